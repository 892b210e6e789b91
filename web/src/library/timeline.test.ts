import { expect, test } from 'vitest';
import { labelMonths, type Point, partOf, thinOut, timeAt } from './timeline';

const at = (year: number, month: number, day: number) => new Date(year, month - 1, day).getTime();

const points: Point[] = [
  { index: 0, time: at(2026, 2, 11) },
  { index: 100, time: at(2026, 1, 22) },
  { index: 200, time: at(2026, 1, 2) },
  { index: 300, time: at(2025, 12, 23) },
];

test('a time between two known items is estimated', () => {
  expect(timeAt(points, 150)).toBe((at(2026, 1, 22) + at(2026, 1, 2)) / 2);
  expect(timeAt(points, 0)).toBe(at(2026, 2, 11));
  expect(timeAt(points, 900)).toBe(at(2025, 12, 23));
  expect(timeAt([], 3)).toBeUndefined();
});

test('months begin where the time crosses them, and another year is named', () => {
  const labels = labelMonths(points, 400);
  expect(labels.map((label) => label.year)).toEqual([false, false, true]);
  expect(labels[2]?.text).toBe('2025');
  expect(labels.map((label) => Number(label.part.toFixed(3)))).toEqual([0, 0.125, 0.525]);
});

test('a list that runs forward in time has its months too', () => {
  const labels = labelMonths(
    [...points].reverse().map((point, place) => ({ index: place * 100, time: point.time })),
    400,
  );
  expect(labels.map((label) => label.year)).toEqual([false, true, false]);
  expect(labels[1]?.text).toBe('2026');
});

test('labels that are too close are left out, months first', () => {
  const labels = [
    { part: 0, text: 'Mar', year: false },
    { part: 0.01, text: '2025', year: true },
    { part: 0.5, text: 'Oct', year: false },
  ];
  expect(thinOut(labels, 600, 20).map((label) => label.text)).toEqual(['2025', 'Oct']);
});

test('the part that is scrolled is between 0 and 1', () => {
  expect(partOf(0, 1000, 500)).toBe(0);
  expect(partOf(250, 1000, 500)).toBe(0.5);
  expect(partOf(600, 1000, 500)).toBe(1);
  expect(partOf(0, 400, 500)).toBe(0);
});
