import { expect, test } from 'vitest';
import { coversRows, heightOf, indexesOf, layOut, moveIndex, moveRows, rowsBetween, scrollTopFor } from './geometry';

const desk = layOut({ width: 848, height: 660, left: 24, right: 34, top: 10, bottom: 10, gap: 6, tile: 126 });
const phone = layOut({ width: 390, height: 690, left: 3, right: 3, top: 3, bottom: 3, gap: 3, tile: 126 });

test('there are six tiles across a desk and three across a phone', () => {
  expect(desk.columns).toBe(6);
  expect(phone.columns).toBe(3);
  expect(phone.side).toBe(126);
});

test('tiles and gaps fill the width exactly', () => {
  expect(desk.side * 6 + 5 * 6).toBeCloseTo(848 - 24 - 34);
});

test('the height counts a last row that is not full', () => {
  expect(heightOf(phone, 7)).toBe(3 + 3 * 129 + 3);
  expect(heightOf(phone, 0)).toBe(6);
});

test('rows in view begin and end inside of the list', () => {
  expect(rowsBetween(phone, 300, 0, 690)).toEqual({ first: 0, last: 5 });
  expect(rowsBetween(phone, 300, -500, 100)).toEqual({ first: 0, last: 0 });
  expect(rowsBetween(phone, 300, 129 * 99, 129 * 140)).toEqual({ first: 98, last: 99 });
  expect(rowsBetween(phone, 0, 0, 690)).toEqual({ first: 0, last: -1 });
});

test('rows come when they are needed and go when they are far', () => {
  const drawn = { first: 10, last: 20 };
  expect(moveRows(drawn, { first: 12, last: 20 }, { first: 8, last: 24 })).toBe(drawn);
  expect(moveRows(drawn, { first: 14, last: 22 }, { first: 11, last: 26 })).toEqual({ first: 11, last: 22 });
  expect(moveRows(drawn, { first: 8, last: 12 }, { first: 4, last: 14 })).toEqual({ first: 8, last: 14 });
  expect(moveRows(drawn, { first: 90, last: 99 }, { first: 80, last: 99 })).toEqual({ first: 90, last: 99 });
  expect(moveRows(drawn, { first: 0, last: -1 }, { first: 0, last: -1 })).toEqual({ first: 0, last: -1 });
});

test('rows cover others if they have all of them', () => {
  expect(coversRows({ first: 2, last: 5 }, { first: 2, last: 5 })).toBe(true);
  expect(coversRows({ first: 2, last: 5 }, { first: 1, last: 4 })).toBe(false);
  expect(coversRows({ first: 2, last: 5 }, { first: 3, last: 6 })).toBe(false);
});

test('the tiles of rows end with the list', () => {
  expect(indexesOf(phone, 7, { first: 1, last: 2 })).toEqual({ from: 3, to: 7 });
});

test('scrolling to a tile moves as little as needed', () => {
  expect(scrollTopFor(phone, 4, 0)).toBe(0);
  expect(scrollTopFor(phone, 0, 500)).toBe(0);
  expect(scrollTopFor(phone, 18, 0)).toBe(3 + 6 * 129 + 126 + 3 - 690);
});

test('arrow keys stay in the list and in the column', () => {
  expect(moveIndex('ArrowRight', 0, 7, phone, 0)).toBe(1);
  expect(moveIndex('ArrowRight', 6, 7, phone, 0)).toBe(6);
  expect(moveIndex('ArrowDown', 1, 7, phone, 0)).toBe(4);
  expect(moveIndex('ArrowDown', 5, 7, phone, 0)).toBe(6);
  expect(moveIndex('ArrowUp', 1, 7, phone, 0)).toBe(1);
  expect(moveIndex('End', 1, 7, phone, 0)).toBe(6);
  expect(moveIndex('ArrowDown', -1, 7, phone, 0)).toBe(0);
  expect(moveIndex('a', 1, 7, phone, 0)).toBeUndefined();
});

test('keys go on from what is in view', () => {
  const scrolled = 3 + 10 * 129 + 40;

  expect(moveIndex('ArrowDown', -1, 300, phone, scrolled)).toBe(33);
  expect(moveIndex('ArrowDown', 1, 300, phone, scrolled)).toBe(33);
  expect(moveIndex('ArrowLeft', 250, 300, phone, scrolled)).toBe(33);
  expect(moveIndex('ArrowDown', 31, 300, phone, scrolled)).toBe(34);
  expect(moveIndex('Home', 250, 300, phone, scrolled)).toBe(0);
  expect(moveIndex('End', 1, 300, phone, scrolled)).toBe(299);
});
