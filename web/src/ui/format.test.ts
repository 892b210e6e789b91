import { expect, test } from 'vitest';
import { formatDuration } from './format';

test('formatDuration writes the two largest units', () => {
  expect(formatDuration(0)).toBe('0 s');
  expect(formatDuration(20.4)).toBe('20 s');
  expect(formatDuration(61)).toBe('1 m 1 s');
  expect(formatDuration(31 * 3600 + 12 * 60 + 5)).toBe('31 h 12 m');
  expect(formatDuration(100 * 3600)).toBe('4 d 4 h');
});
