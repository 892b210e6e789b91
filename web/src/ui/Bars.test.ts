import { expect, test } from 'vitest';
import { niceCeiling } from './Bars';

test('niceCeiling is not below the value, and its quarters are whole', () => {
  for (const value of [4, 5, 9, 10, 13, 99, 100, 101, 420, 451, 999, 1000, 8043, 123_456]) {
    const ceiling = niceCeiling(value);
    expect(ceiling).toBeGreaterThanOrEqual(value);
    expect(ceiling % 4).toBe(0);
    expect(ceiling).toBeLessThanOrEqual(value * 2);
  }
});

test('niceCeiling leaves round numbers as they are', () => {
  expect(niceCeiling(500)).toBe(500);
  expect(niceCeiling(451)).toBe(500);
});
