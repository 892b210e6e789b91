import { drawCovering, nodeRadius } from './paint';

export type Size = { width: number; height: number };
type Made = { bitmap: ImageBitmap; round: number };
type Wanted = { address: string; box: Size; size: Size };

const atOnce = 6;
const largestSide = 512;
// A picture that could not be read is asked for again after this time.
const retryAfter = 30_000;
// What is not in view is kept up to this many pixels of all bitmaps together, of four bytes each.
const mostPixels = 8_000_000;

/** bitmapSize returns the size of the bitmap for a box on the screen. Sizes come in steps, so that not each zoom needs its own. */
export function bitmapSize({ width, height }: Size): Size {
  const longest = Math.max(width, height, 1);
  const side = Math.min(largestSide, 2 ** Math.ceil(Math.log2(longest)));

  return {
    width: Math.max(1, Math.round((width * side) / longest)),
    height: Math.max(1, Math.round((height * side) / longest)),
  };
}

/** FarPictures makes small bitmaps of pictures, with round corners, and keeps those that were drawn last. */
export class FarPictures {
  private readonly made = new Map<string, Made>();
  private readonly wanted = new Map<string, Wanted>();
  private readonly running = new Set<string>();
  private readonly failed = new Map<string, number>();
  private pixels = 0;
  private round = 0;
  private closed = false;

  /** onMade is called when a picture has come. */
  constructor(private readonly onMade: () => void) {}

  /** The number of pictures that the last round asked for and that have not come. */
  get missing(): number {
    return this.wanted.size;
  }

  /** startRound begins to draw the board anew: what is not asked for any more is not made. */
  startRound(): void {
    this.round += 1;
    this.wanted.clear();
  }

  /** get returns the best bitmap there is for a box of the board, and asks for a better one if that is too small. */
  get(address: string, box: Size, scale: number): ImageBitmap | undefined {
    const size = bitmapSize({ width: box.width * scale, height: box.height * scale });
    const key = `${(box.width / box.height).toFixed(2)} ${address}`;
    const made = this.made.get(key);
    if (made) {
      made.round = this.round;
      this.made.delete(key);
      this.made.set(key, made);
    }
    const failed = performance.now() - (this.failed.get(key) ?? -retryAfter) < retryAfter;
    if (!failed && (!made || made.bitmap.width < size.width)) {
      this.wanted.set(key, { address, box, size });
    }

    return made?.bitmap;
  }

  /** endRound makes what was asked for. */
  endRound(): void {
    for (const [key, wanted] of this.wanted) {
      if (this.running.size >= atOnce) {
        return;
      }
      if (!this.running.has(key)) {
        this.running.add(key);
        void this.make(key, wanted);
      }
    }
  }

  private async make(key: string, { address, box, size }: Wanted): Promise<void> {
    const bitmap = await makeBitmap(address, box, size).catch(() => undefined);
    this.running.delete(key);
    this.wanted.delete(key);
    if (this.closed) {
      bitmap?.close();
      return;
    }

    if (bitmap) {
      this.drop(key);
      this.made.set(key, { bitmap, round: this.round });
      this.pixels += bitmap.width * bitmap.height;
      this.failed.delete(key);
      this.forgetOld();
    } else {
      this.failed.set(key, performance.now());
    }
    this.endRound();
    this.onMade();
  }

  private drop(key: string): void {
    const bitmap = this.made.get(key)?.bitmap;
    if (bitmap) {
      this.made.delete(key);
      this.pixels -= bitmap.width * bitmap.height;
      bitmap.close();
    }
  }

  private forgetOld(): void {
    for (const [key, { round }] of this.made) {
      if (this.pixels <= mostPixels || round === this.round) {
        return;
      }
      this.drop(key);
    }
  }

  /** close gives all bitmaps back. */
  close(): void {
    this.closed = true;
    this.wanted.clear();
    for (const key of this.made.keys()) {
      this.drop(key);
    }
  }
}

// A fetched picture is decoded beside the page's own work, unlike that of an element.
async function makeBitmap(address: string, box: Size, size: Size): Promise<ImageBitmap | undefined> {
  const response = await fetch(address, { credentials: 'omit', priority: 'low' });
  const picture = await createImageBitmap(await response.blob());
  const canvas = new OffscreenCanvas(size.width, size.height);
  const context = canvas.getContext('2d');
  if (context) {
    context.imageSmoothingQuality = 'medium';
    context.roundRect(0, 0, size.width, size.height, (nodeRadius * size.width) / box.width);
    context.clip();
    drawCovering(context, picture, { x: 0, y: 0, ...size });
  }
  picture.close();

  return canvas.transferToImageBitmap();
}
