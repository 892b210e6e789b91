import { expect, test } from 'vitest';
import { Places } from './places';

const day = (number: number) => `2026-11-${String(number).padStart(2, '0')}T00:00:00Z`;

const make = () =>
  new Places({
    total: 250,
    marks: [
      { index: 0, cursor: null, created: day(20) },
      { index: 100, cursor: 'b', created: day(10) },
      { index: 200, cursor: 'c', created: day(5) },
    ],
  });

test('an item is read at the place before it', () => {
  const places = make();
  expect([0, 99, 100, 199, 200, 249].map((index) => places.placeOf(index))).toEqual([0, 0, 1, 1, 2, 2]);
});

test('a stretch ends at the next place, the last one at the end', () => {
  const places = make();
  expect([0, 1, 2].map((place) => places.sizeOf(place))).toEqual([100, 100, 50]);
});

test('the first place needs no cursor', () => {
  const places = make();
  expect(places.cursorOf(0)).toBeUndefined();
  expect(places.cursorOf(1)).toBe('b');
});

test('an item that goes moves all later places', () => {
  const places = make();
  places.resize(1, -1);
  expect(places.total).toBe(249);
  expect(places.startOf(1)).toBe(100);
  expect(places.startOf(2)).toBe(199);
  expect(places.placeOf(199)).toBe(2);

  places.resize(1, 1);
  expect(places.startOf(2)).toBe(200);
  expect(places.total).toBe(250);
});

test('a place without items is never read', () => {
  const places = make();
  places.resize(1, -100);
  expect(places.placeOf(100)).toBe(2);
  expect(places.placeOf(99)).toBe(0);
  places.resize(2, -50);
  expect(places.placeOf(100)).toBe(0);
});

test('a time is found in a list with the newest first', () => {
  const places = make();
  const at = (number: number) => new Date(day(number)).getTime();
  expect(places.placesOfTime(at(15))).toEqual([0]);
  expect(places.placesOfTime(at(10))).toEqual([0, 1]);
  expect(places.placesOfTime(at(1))).toEqual([2]);
});

test('a list without items has no place', () => {
  const places = new Places({ total: 0, marks: [] });
  expect(places.count).toBe(0);
  expect(places.sizeOf(0)).toBe(0);
});
