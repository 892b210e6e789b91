import { describe, expect, it } from 'vitest';
import { breakLines } from './paint';

describe('paint', () => {
  it('breaks lines between words and keeps those that people made', () => {
    expect(breakLines('one two three\nfour', 7, (part) => part.length)).toEqual(['one two', 'three', 'four']);
    expect(breakLines('unbreakable', 3, (part) => part.length)).toEqual(['unbreakable']);
  });
});
