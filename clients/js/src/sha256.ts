/** Hash takes bytes in pieces. */
export interface Hash {
  update(bytes: Uint8Array): void;
  /** hex returns the hash as hexadecimal text. Nothing may be added afterwards. */
  hex(): string;
}

const constants = primeRoots(64, 3);
const initial = primeRoots(8, 2);

/** primeRoots returns the first 32 bits of the fractional parts of the roots of the first primes (FIPS 180-4, 4.2.2). */
function primeRoots(count: number, degree: number): Uint32Array {
  const words = new Uint32Array(count);
  let found = 0;
  for (let candidate = 2; found < count; candidate++) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) {
      isPrime &&= candidate % divisor !== 0;
    }
    if (isPrime) {
      words[found++] = fractionBits(candidate, degree);
    }
  }
  return words;
}

/** fractionBits computes with integers, because the last bits of a floating-point root are not the same everywhere. */
function fractionBits(value: number, degree: number): number {
  const target = BigInt(value) << BigInt(32 * degree);
  let low = 0n;
  let high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(degree) <= target) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return Number(low & 0xffffffffn);
}

/** SHA256 hashes a stream. WebCrypto can hash only what is in memory as a whole, and only on pages loaded with TLS. */
export class SHA256 implements Hash {
  private readonly state = Uint32Array.from(initial);
  private readonly block = new Uint8Array(64);
  private readonly view = new DataView(this.block.buffer);
  private readonly words = new Uint32Array(64);
  private filled = 0;
  private length = 0;

  update(bytes: Uint8Array): void {
    this.length += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + 64 - this.filled);
      this.block.set(piece, this.filled);
      this.filled += piece.length;
      at += piece.length;
      if (this.filled === 64) {
        this.compress();
        this.filled = 0;
      }
    }
  }

  hex(): string {
    const bits = this.length * 8;
    const padding = new Uint8Array((this.filled < 56 ? 56 : 120) - this.filled + 8);
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(padding.length - 4, bits >>> 0);
    this.update(padding);
    return Array.from(this.state, (word) => word.toString(16).padStart(8, '0')).join('');
  }

  private compress(): void {
    const w = this.words;
    for (let i = 0; i < 16; i++) {
      w[i] = this.view.getUint32(i * 4);
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15] as number;
      const y = w[i - 2] as number;
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      w[i] = ((w[i - 16] as number) + s0 + (w[i - 7] as number) + s1) | 0;
    }

    let [a, b, c, d, e, f, g, h] = this.state as unknown as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (constants[i] as number) + (w[i] as number)) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) {
      this.state[i] = (this.state[i] as number) + word;
    }
  }
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
