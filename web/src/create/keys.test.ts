import { expect, test } from 'vitest';
import { type Box, neighbourOf } from './keys';

const box = (id: string, left: number, top: number): Box => ({ id, left, top, width: 100, height: 100 });
// Two runs: three results in a row, then one below, then a row of two.
const boxes = [
  box('a', 0, 0),
  box('b', 110, 0),
  box('c', 220, 0),
  box('d', 0, 200),
  box('e', 0, 400),
  box('f', 110, 400),
];

test('left and right follow the order over all runs', () => {
  expect(neighbourOf(boxes, 'c', 'ArrowRight')).toBe('d');
  expect(neighbourOf(boxes, 'd', 'ArrowLeft')).toBe('c');
  expect(neighbourOf(boxes, 'f', 'ArrowRight')).toBeUndefined();
});

test('up and down go to the closest result of the next row', () => {
  expect(neighbourOf(boxes, 'c', 'ArrowDown')).toBe('d');
  expect(neighbourOf(boxes, 'd', 'ArrowDown')).toBe('e');
  expect(neighbourOf(boxes, 'd', 'ArrowUp')).toBe('a');
  expect(neighbourOf(boxes, 'f', 'ArrowUp')).toBe('d');
  expect(neighbourOf(boxes, 'a', 'ArrowUp')).toBeUndefined();
});

test('Home and End go to the ends, other keys nowhere', () => {
  expect(neighbourOf(boxes, 'c', 'Home')).toBe('a');
  expect(neighbourOf(boxes, 'c', 'End')).toBe('f');
  expect(neighbourOf(boxes, 'c', 'x')).toBeUndefined();
  expect(neighbourOf(boxes, 'gone', 'ArrowRight')).toBe('a');
});
