import { expect, test } from 'vitest';
import { entryName, sumDays } from './ledger';

test('sumDays adds up all days', () => {
  const day = { day: '2026-11-16', received: 1000, spent: 24, balance: 976, entries: 7 };
  expect(sumDays([day, { ...day, received: 0, spent: 6, entries: 1 }])).toEqual({
    received: 1000,
    spent: 30,
    entries: 8,
  });
  expect(sumDays([])).toEqual({ received: 0, spent: 0, entries: 0 });
});

test('entryName tells grants from tokens that were taken back, and names the tool of a run', () => {
  expect(entryName({ kind: 'grant', tokens: 5, tool_name: null })).toBe('Grant of the operator');
  expect(entryName({ kind: 'grant', tokens: -5, tool_name: null })).toBe('Taken back by the operator');
  expect(entryName({ kind: 'settle', tokens: -4, tool_name: 'Sketch' })).toBe('Run of Sketch');
  expect(entryName({ kind: 'settle', tokens: -4, tool_name: null })).toBe('Run of A tool that is gone');
  expect(entryName({ kind: 'later_kind', tokens: 1, tool_name: null })).toBe('later_kind');
});
