import { describe, expect, it } from 'vitest';
import { bitmapSize } from './farPictures';

describe('farPictures', () => {
  it('makes bitmaps in steps that are at least as large as what is seen', () => {
    expect(bitmapSize({ width: 22, height: 22 })).toEqual({ width: 32, height: 32 });
    expect(bitmapSize({ width: 66, height: 33 })).toEqual({ width: 128, height: 64 });
    expect(bitmapSize({ width: 4000, height: 1000 })).toEqual({ width: 512, height: 128 });
    expect(bitmapSize({ width: 0.2, height: 0.001 })).toEqual({ width: 1, height: 1 });
  });
});
