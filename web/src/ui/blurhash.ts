// A decoder of BlurHash (https://github.com/woltapp/blurhash, MIT), as the format describes it: a few cosine waves per colour.

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~';

function decode83(text: string): number {
  let value = 0;
  for (const character of text) {
    value = value * 83 + Math.max(0, alphabet.indexOf(character));
  }
  return value;
}

const toLinear = (value: number) => {
  const part = value / 255;
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
};

const toSrgb = (value: number) => {
  const part = Math.min(1, Math.max(0, value));
  return Math.round((part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055) * 255);
};

const signedSquare = (value: number) => Math.sign(value) * value * value;

/** averageColor returns the average colour of a BlurHash as a CSS colour; it stands in its first characters. */
export function averageColor(hash: string): string {
  return hash.length < 6 ? 'transparent' : `#${decode83(hash.slice(2, 6)).toString(16).padStart(6, '0')}`;
}

/** decodeBlurhash returns the pixels (RGBA) of a BlurHash, or undefined if the text is none. */
export function decodeBlurhash(
  hash: string,
  width: number,
  height: number,
): Uint8ClampedArray<ArrayBuffer> | undefined {
  const size = decode83(hash.slice(0, 1));
  const columns = (size % 9) + 1;
  const rows = Math.floor(size / 9) + 1;
  if (hash.length !== 4 + 2 * columns * rows) {
    return undefined;
  }

  const maximum = (decode83(hash.slice(1, 2)) + 1) / 166;
  const average = decode83(hash.slice(2, 6));
  const colors: Array<[number, number, number]> = [
    [toLinear(average >> 16), toLinear((average >> 8) & 255), toLinear(average & 255)],
  ];
  for (let i = 1; i < columns * rows; i++) {
    const value = decode83(hash.slice(4 + i * 2, 6 + i * 2));
    colors.push([
      signedSquare((Math.floor(value / 361) - 9) / 9) * maximum,
      signedSquare(((Math.floor(value / 19) % 19) - 9) / 9) * maximum,
      signedSquare(((value % 19) - 9) / 9) * maximum,
    ]);
  }

  const pixels = new Uint8ClampedArray(width * height * 4);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const sum = [0, 0, 0];
      for (let j = 0; j < rows; j++) {
        for (let i = 0; i < columns; i++) {
          const wave = Math.cos((Math.PI * x * i) / width) * Math.cos((Math.PI * y * j) / height);
          const color = colors[j * columns + i] ?? [0, 0, 0];
          sum[0] = (sum[0] ?? 0) + color[0] * wave;
          sum[1] = (sum[1] ?? 0) + color[1] * wave;
          sum[2] = (sum[2] ?? 0) + color[2] * wave;
        }
      }
      const at = (y * width + x) * 4;
      pixels[at] = toSrgb(sum[0] ?? 0);
      pixels[at + 1] = toSrgb(sum[1] ?? 0);
      pixels[at + 2] = toSrgb(sum[2] ?? 0);
      pixels[at + 3] = 255;
    }
  }

  return pixels;
}
