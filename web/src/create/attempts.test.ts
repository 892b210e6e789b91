import { expect, test } from 'vitest';
import { beginAttempt, endAttempt } from './attempts';

function newStore() {
  const entries = new Map<string, string>();
  return {
    getItem: (key: string) => entries.get(key) ?? null,
    setItem: (key: string, value: string) => void entries.set(key, value),
    removeItem: (key: string) => void entries.delete(key),
  };
}

test('the same request keeps its key until it was accepted', () => {
  const store = newStore();
  const first = beginAttempt('a', store);

  expect(beginAttempt('a', store)).toBe(first);
  endAttempt(store);
  expect(beginAttempt('a', store)).not.toBe(first);
});

test('another request has another key', () => {
  const store = newStore();

  expect(beginAttempt('a', store)).not.toBe(beginAttempt('b', store));
});

test('a key is not used after it has expired', () => {
  const store = newStore();
  const first = beginAttempt('a', store, 0);

  expect(beginAttempt('a', store, 13 * 3600 * 1000)).not.toBe(first);
});
