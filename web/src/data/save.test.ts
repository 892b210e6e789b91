import { expect, test } from 'vitest';
import { nameOfFile } from './save';

test('nameOfFile reads quoted and bare names', () => {
  expect(nameOfFile('attachment; filename="usage-2026-11-01-2026-12-01.csv"')).toBe('usage-2026-11-01-2026-12-01.csv');
  expect(nameOfFile('attachment; filename=runs.csv')).toBe('runs.csv');
});

test('nameOfFile has no name for a header without one', () => {
  expect(nameOfFile('attachment')).toBeUndefined();
  expect(nameOfFile(null)).toBeUndefined();
});
