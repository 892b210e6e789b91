import { expect, test } from 'vitest';
import { describeBudget } from './BudgetMeter';
import type { Budget } from './companies';

const budget: Budget = {
  team_id: 'team',
  tokens: 5000,
  hard: true,
  webhook_url: null,
  month: '2026-11',
  spent: 1600,
  percent: 32,
  told_percent: 0,
  created: '2026-11-01T00:00:00Z',
  updated: '2026-11-01T00:00:00Z',
};

test('describeBudget reckons where the month will end', () => {
  expect(describeBudget(budget, '2026-11-16')).toBe('On course for 3,000 tokens by the end of the month.');
});

test('describeBudget tells what is left near the end, and whether managers know', () => {
  const near = { ...budget, spent: 4100, percent: 82, told_percent: 80 as const };
  expect(describeBudget(near, '2026-11-21')).toBe('82 % spent, 9 days left. Managers were told at 80 %.');
  expect(describeBudget({ ...near, told_percent: 0 }, '2026-11-30')).toBe('82 % spent, the last day of the month.');
});

test('describeBudget tells budgets that refuse from those that do not', () => {
  const full = { ...budget, spent: 5000, percent: 100 };
  expect(describeBudget(full, '2026-11-16')).toBe('Spent. Runs are refused until next month.');
  expect(describeBudget({ ...full, hard: false }, '2026-11-16')).toBe('Spent. Runs go on; this budget only tells.');
});
