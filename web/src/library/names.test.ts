import { expect, test } from 'vitest';
import { nameArchive, nameFile, nameFiles, wordsOf } from './names';

const png = (label: string | null) => ({ label, mime_type: 'image/png' });

test('a name is made of the words of the prompt', () => {
  expect(nameFile(png('Deer, in the snow!'))).toBe('deer-in-the-snow.png');
  expect(nameFile({ label: 'Photo 1.JPG', mime_type: 'image/jpeg' })).toBe('photo-1.jpg');
});

test('letters of all languages stay', () => {
  expect(wordsOf('Füchse im Schnee, 雪の狐')).toBe('füchse-im-schnee-雪の狐');
});

test('a name holds no path and is never empty', () => {
  expect(nameFile(png('../../etc/passwd'))).toBe('etc-passwd.png');
  expect(nameFile(png('***'))).toBe('result.png');
  expect(nameFile(png(null))).toBe('result.png');
  expect(nameFile({ label: 'x', mime_type: 'application/odd' })).toBe('x.bin');
});

test('long prompts are cut', () => {
  expect(wordsOf('a '.repeat(200)).length).toBeLessThanOrEqual(48);
});

test('files in a ZIP are numbered, so that equal prompts do not collide', () => {
  expect(nameFiles([png('fox'), png('fox')])).toEqual(['01-fox.png', '02-fox.png']);
  expect(nameFiles(Array.from({ length: 120 }, () => png('fox')))[0]).toBe('001-fox.png');
});

test('the ZIP file has the day and the count in its name', () => {
  expect(nameArchive(3, new Date(2026, 10, 5))).toBe('atelier-2026-11-05-3-files.zip');
});
