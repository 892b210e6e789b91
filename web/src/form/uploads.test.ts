import { expect, test } from 'vitest';
import type { Leaf } from './fields';
import { checkFile, mediumOfFile, typesOf } from './uploads';

const field = (accept?: string[]): Leaf => ({
  uuid: 'u',
  isField: true,
  fieldKey: 'picture',
  type: 'IMG',
  label: 'Picture',
  required: true,
  defaultValue: null,
  display: accept ? { accept } : {},
});

test('a file of another type is refused with the types that are taken', () => {
  const file = { name: 'a.webp', type: 'image/webp' };

  expect(checkFile(field(['image/png', 'image/jpeg']), file)).toBe(
    'a.webp is of a type that this input does not take. It takes PNG, JPEG.',
  );
  expect(checkFile(field(), file)).toBeUndefined();
  expect(typesOf(field())).toBe('pictures');
});

test('the kind of a file follows its type, or its name where browsers know none', () => {
  expect(mediumOfFile({ name: 'a.png', type: 'image/png' })).toBe('IMG');
  expect(mediumOfFile({ name: 'a.mp4', type: 'video/mp4' })).toBe('VID');
  expect(mediumOfFile({ name: 'A.GLB', type: '' })).toBe('ASSET_3D');
  expect(mediumOfFile({ name: 'a.heic', type: '' })).toBe('IMG');
  expect(mediumOfFile({ name: 'a.pdf', type: 'application/pdf' })).toBeUndefined();
});
