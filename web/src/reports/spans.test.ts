import { expect, test } from 'vitest';
import { labelDays, listSpans, nameSpan } from './spans';

const today = '2026-11-16';

test('nameSpan names whole months, with the year where it is another one', () => {
  expect(nameSpan({ first: '2026-10-01', last: '2026-10-31' }, today)).toBe('October');
  expect(nameSpan({ first: '2025-10-01', last: '2025-10-31' }, today)).toBe('October 2025');
  expect(nameSpan({ first: '2026-11-01', last: '2026-11-16' }, today)).toMatch(/1\D+16/);
});

test('labelDays are different even for the same day of two years', () => {
  const labels = labelDays(['2025-11-16', '2026-11-16']);
  expect(new Set(labels).size).toBe(2);
});

test('listSpans offers the month before', () => {
  expect(listSpans(today).map((one) => one.value)).toEqual(['', '2026-10', '7d', '30d', '90d', '2026']);
});
