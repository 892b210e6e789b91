import { expect, test } from 'vitest';
import type { Item } from './items';
import { rangeBetween, Selection } from './selection';

const item = (id: string) => ({ id, favorited: false }) as Item;
const ids = (selection: Selection) => selection.list().map((one) => one.id);

test('a range goes both ways and has both ends', () => {
  expect(rangeBetween(3, 7)).toEqual({ from: 3, to: 8 });
  expect(rangeBetween(7, 3)).toEqual({ from: 3, to: 8 });
  expect(rangeBetween(4, 4)).toEqual({ from: 4, to: 5 });
});

test('an item is chosen once and can be given back', () => {
  const selection = new Selection();
  selection.toggle(item('a'), 0);
  selection.toggle(item('b'), 1);
  selection.add([item('b'), item('c')]);
  expect(ids(selection)).toEqual(['a', 'b', 'c']);

  selection.toggle(item('a'), 0);
  expect(selection.has('a')).toBe(false);
  expect(selection.anchor).toBe(0);
});

test('listeners are told, and the list is the same until something changes', () => {
  const selection = new Selection();
  let calls = 0;
  const stop = selection.subscribe(() => {
    calls += 1;
  });
  selection.add([item('a')]);
  expect(selection.list()).toBe(selection.list());
  expect(calls).toBe(1);

  stop();
  selection.clear();
  expect(calls).toBe(1);
  expect(ids(selection)).toEqual([]);
});

test('a newer version of an item takes its place, others are not added', () => {
  const selection = new Selection();
  selection.add([item('a')]);
  selection.update([{ ...item('a'), favorited: true }, item('z')]);
  expect(selection.list().map((one) => [one.id, one.favorited])).toEqual([['a', true]]);
});
