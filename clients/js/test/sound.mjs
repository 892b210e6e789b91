import { randomBytes } from 'node:crypto';

/** makeWAV returns a sound of noise. */
export function makeWAV(size) {
  const header = Buffer.alloc(44);
  header.write('RIFF');
  header.writeUInt32LE(size - 8, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(44100, 24);
  header.writeUInt32LE(88200, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(size - 44, 40);
  return Buffer.concat([header, randomBytes(size - 44)]);
}
