import { describe, expect, it } from 'vitest';
import { placeOf } from './farPainter';

const painted = { x: 40, y: -20, zoom: 0.2, width: 1000, height: 600 };

describe('placeOf', () => {
  it('puts the canvas where it was painted for, with its margin outside of the window', () => {
    expect(placeOf(painted, painted)).toEqual({ x: -256, y: -256, scale: 1, covers: true });
  });

  it('shifts the canvas with the view until the view leaves it', () => {
    expect(placeOf(painted, { ...painted, x: 140 })).toEqual({ x: -156, y: -256, scale: 1, covers: true });
    expect(placeOf(painted, { ...painted, x: 40 + 257 }).covers).toBe(false);
    expect(placeOf(painted, { ...painted, y: -20 - 257 }).covers).toBe(false);
  });

  it('keeps each point of the board where it is seen while the view is zoomed', () => {
    const shown = { ...painted, x: 10, y: 30, zoom: 0.25 };
    const { x, y, scale } = placeOf(painted, shown);
    const point = { x: 700, y: 300 };
    const onCanvas = { x: point.x * painted.zoom + painted.x + 256, y: point.y * painted.zoom + painted.y + 256 };
    expect(onCanvas.x * scale + x).toBeCloseTo(point.x * shown.zoom + shown.x);
    expect(onCanvas.y * scale + y).toBeCloseTo(point.y * shown.zoom + shown.y);
  });
});
