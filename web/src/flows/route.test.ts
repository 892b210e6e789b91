import { describe, expect, test } from 'vitest';
import { findLane, pathOf } from './route';

const start = { x: 240, y: 50 };
const end = { x: 960, y: 50 };
const box = (x: number, y: number, height = 100) => ({ x, y, width: 240, height });

describe('ways of lines', () => {
  test('a free way is one curve', () => {
    expect(findLane(start, end, [], 0)).toBeUndefined();
    expect(findLane(start, end, [box(320, 200), box(640, -300)], 0)).toBeUndefined();
    // Nodes that stand beside the line, not between its ends, are not in its way.
    expect(findLane(start, end, [box(0, 0), box(960, 0)], 0)).toBeUndefined();
    expect(pathOf(start, end, undefined)).toBe('M 240 50 C 600 50 600 50 960 50');
  });

  test('a node in the way is passed on its nearer side', () => {
    expect(findLane(start, end, [box(320, 0)], 0)).toEqual({ from: 320, to: 560, y: -18 });
    expect(findLane(start, end, [box(320, -60), box(640, -20)], 0)).toEqual({ from: 320, to: 880, y: 98 });
    expect(pathOf(start, end, { from: 320, to: 880, y: 98 })).toBe(
      'M 240 50 C 280 50 280 98 320 98 L 880 98 C 920 98 920 50 960 50',
    );
  });

  test('a gap that is wide enough is taken, a narrow one is not', () => {
    expect(findLane(start, end, [box(320, -46, 100), box(320, 90, 100)], 0)?.y).toBe(72);
    expect(findLane(start, end, [box(320, -48, 100), box(320, 60, 100)], 0)?.y).toBe(-66);
  });

  test('lines of different sources keep apart', () => {
    const ys = [0, 1, 2].map((track) => findLane(start, end, [box(320, -30)], track)?.y);

    expect(new Set(ys).size).toBe(3);
  });

  test('a line that leads back is one curve', () => {
    expect(findLane(end, start, [box(320, 0)], 0)).toBeUndefined();
    expect(pathOf(end, start, undefined)).toContain('C 1000 50 200 50 240 50');
  });
});
