import { describe, expect, test } from 'vitest';
import { todayIn } from '../data/days';
import { boundsIn, countDays, isDay, lastOfMonth, listDays, readSpan, spanBefore, startIn } from './span';

const today = '2026-11-16';

describe('readSpan', () => {
  test.each([
    ['', { first: '2026-11-01', last: '2026-11-16' }],
    ['nonsense', { first: '2026-11-01', last: '2026-11-16' }],
    ['2026-10', { first: '2026-10-01', last: '2026-10-31' }],
    ['2026-11', { first: '2026-11-01', last: '2026-11-16' }],
    ['2026-13', { first: '2026-11-01', last: '2026-11-16' }],
    ['2024-02', { first: '2024-02-01', last: '2024-02-29' }],
    ['7d', { first: '2026-11-10', last: '2026-11-16' }],
    ['0d', { first: '2026-11-01', last: '2026-11-16' }],
    ['2026', { first: '2026-01-01', last: '2026-11-16' }],
    ['2025', { first: '2025-01-01', last: '2025-12-31' }],
    ['2026-10-03..2026-10-15', { first: '2026-10-03', last: '2026-10-15' }],
    ['2026-10-15..2026-10-03', { first: '2026-11-01', last: '2026-11-16' }],
    ['2026-02-30..2026-03-03', { first: '2026-11-01', last: '2026-11-16' }],
  ])('reads %s', (text, span) => {
    expect(readSpan(text, today)).toEqual(span);
  });
});

describe('spanBefore', () => {
  test('is the whole month before for a whole month', () => {
    expect(spanBefore({ first: '2026-10-01', last: '2026-10-31' })).toEqual({
      first: '2026-09-01',
      last: '2026-09-30',
    });
    expect(spanBefore({ first: '2026-02-01', last: '2026-02-28' })).toEqual({
      first: '2026-01-01',
      last: '2026-01-31',
    });
  });

  test('is as many days of the month before for the first days of a month', () => {
    expect(spanBefore({ first: '2026-11-01', last: '2026-11-16' })).toEqual({
      first: '2026-10-01',
      last: '2026-10-16',
    });
    expect(spanBefore({ first: '2026-03-01', last: '2026-03-30' })).toEqual({
      first: '2026-02-01',
      last: '2026-02-28',
    });
  });

  test('is as many days before for other spans', () => {
    expect(spanBefore({ first: '2026-11-10', last: '2026-11-16' })).toEqual({
      first: '2026-11-03',
      last: '2026-11-09',
    });
    expect(spanBefore({ first: '2025-01-01', last: '2025-12-31' })).toEqual({
      first: '2024-01-02',
      last: '2024-12-31',
    });
  });
});

test('a span lists each of its days once', () => {
  const span = { first: '2026-02-27', last: '2026-03-02' };
  expect(listDays(span)).toEqual(['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02']);
  expect(countDays(span)).toBe(4);
});

test('isDay and lastOfMonth know the calendar', () => {
  expect(isDay('2026-02-29')).toBe(false);
  expect(isDay('2024-02-29')).toBe(true);
  expect(isDay('2026-2-9')).toBe(false);
  expect(lastOfMonth('2026-12-05')).toBe('2026-12-31');
});

test('days begin and end with the clock of the zone', () => {
  expect(startIn('UTC', '2026-11-16')).toBe('2026-11-16T00:00:00Z');
  expect(startIn('Europe/Paris', '2026-11-01')).toBe('2026-10-31T23:00:00Z');
  expect(startIn('Asia/Kathmandu', '2026-11-01')).toBe('2026-10-31T18:15:00Z');
  expect(startIn('America/New_York', '2026-07-01')).toBe('2026-07-01T04:00:00Z');
});

test('the bounds of a month follow a change of clocks', () => {
  expect(boundsIn('Europe/Paris', { first: '2026-10-01', last: '2026-10-31' })).toEqual({
    start_utc: '2026-09-30T22:00:00Z',
    end_utc: '2026-10-31T23:00:00Z',
  });
});

test('todayIn differs between zones', () => {
  const now = new Date('2026-11-16T23:30:00Z');
  expect(todayIn('UTC', now)).toBe('2026-11-16');
  expect(todayIn('Europe/Paris', now)).toBe('2026-11-17');
});
