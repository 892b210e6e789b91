import { expect, test } from 'vitest';
import { affordableCount, type Price } from './price';

const price: Price = {
  total_tokens: 8,
  free_allowance_used: 0,
  tokens_per_result: 1,
  estimated_seconds: null,
  can_run: false,
  blocking_reason: 'This run needs 8 tokens and the team has 3.',
};

test('the way out of a price that is too high is to make fewer', () => {
  expect(affordableCount(price, 3, 8, 1)).toBe(3);
  expect(affordableCount({ ...price, tokens_per_result: 2 }, 3, 8, 1)).toBe(1);
});

test('there is no such way without tokens, below the least number, or if the reason is another', () => {
  expect(affordableCount(price, 0, 8, 1)).toBeUndefined();
  expect(affordableCount(price, 3, 8, 4)).toBeUndefined();
  expect(affordableCount(price, 30, 8, 1)).toBeUndefined();
  expect(affordableCount({ ...price, can_run: true }, 3, 8, 1)).toBeUndefined();
});
