import { describe, expect, it } from 'vitest';
import { nameOf } from './keys';

const key = (name: string, held: Partial<Record<'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey', boolean>> = {}) => ({
  key: name,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...held,
});

describe('nameOf', () => {
  it('names keys as maps do', () => {
    expect(nameOf(key('f'))).toBe('f');
    expect(nameOf(key(' '))).toBe('Space');
    expect(nameOf(key('?', { shiftKey: true }))).toBe('?');
    expect(nameOf(key('Z', { ctrlKey: true, shiftKey: true }))).toBe('Ctrl+Shift+z');
    expect(nameOf(key('ArrowUp', { shiftKey: true }))).toBe('Shift+ArrowUp');
    expect(nameOf(key('a', { altKey: true }))).toBe('Alt+a');
  });
});
