import { expect, test } from 'vitest';
import { type BoardItem, placeBelow } from './boardplaces';

const item = (id: string, width: number | null, height: number | null): BoardItem => ({
  id,
  kind: 'LIBRARY_REF',
  width,
  height,
});

test('items keep their shape and stand side by side', () => {
  const nodes = placeBelow([], [item('a', 512, 512), item('b', 1024, 512)]);
  expect(nodes).toEqual([
    { kind: 'LIBRARY_REF', ref: 'a', x: 0, y: 0, width: 280, height: 280 },
    { kind: 'LIBRARY_REF', ref: 'b', x: 304, y: 0, width: 280, height: 140 },
  ]);
});

test('they stand below what is on the board', () => {
  const [node] = placeBelow([{ x: -50, y: 100, width: 10, height: 200, item: null }], [item('a', null, null)]);
  expect(node).toMatchObject({ x: -50, y: 348 });
});

test('a new row begins below the tallest of the row before', () => {
  const items = Array.from({ length: 5 }, (_, number) => item(String(number), 100, number === 2 ? 200 : 100));
  expect(placeBelow([], items).map((node) => node.y)).toEqual([0, 0, 0, 0, 584]);
});
