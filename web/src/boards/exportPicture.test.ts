import { describe, expect, it } from 'vitest';
import { pictureScale } from './exportPicture';

describe('exportPicture', () => {
  it('keeps the picture within its bounds', () => {
    expect(pictureScale(800, 600)).toBe(2);
    for (const [width, height] of [
      [40_000, 500],
      [500, 40_000],
      [30_000, 30_000],
    ] as const) {
      const scale = pictureScale(width, height);
      expect(Math.max(width, height) * scale).toBeLessThanOrEqual(8192);
      expect(width * height * scale * scale).toBeLessThanOrEqual(40_000_001);
    }
  });
});
