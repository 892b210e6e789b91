import { expect, test } from 'vitest';
import type { Item } from './items';
import { Places } from './places';
import { GrowingShelf, PlacedShelf, type ReadPage } from './shelf';

const item = (number: number) =>
  ({ id: `i${number}`, created: new Date(Date.UTC(2026, 0, 1) - number * 60_000).toISOString() }) as Item;

/** library serves a list of items with cursors that are numbers, and notes each call. */
function library(total: number) {
  const items = Array.from({ length: total }, (_, number) => item(number));
  const calls: Array<string | undefined> = [];
  const aborted: string[] = [];
  const readPage: ReadPage = async (cursor, limit, signal) => {
    calls.push(cursor);
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (signal.aborted) {
      aborted.push(cursor ?? '');
      throw signal.reason;
    }
    const from = Number(cursor ?? 0);
    const next = from + limit < items.length ? String(from + limit) : undefined;
    return { items: items.slice(from, from + limit), next };
  };
  const marks = items
    .map((one, index) => ({ index, cursor: index === 0 ? null : String(index), created: one.created }))
    .filter((_, index) => index % 100 === 0);

  return { shelf: new PlacedShelf(new Places({ total, marks }), readPage), readPage, calls, aborted };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

test('a list is entered in the middle with one call', async () => {
  const { shelf, calls } = library(100_000);
  shelf.want(50_010, 50_040);
  await settle();
  expect(calls).toEqual(['50000']);
  expect(shelf.itemAt(50_010)?.id).toBe('i50010');
  expect(shelf.itemAt(0)).toBeUndefined();
});

test('reading stops for what has left the view', async () => {
  const { shelf, aborted } = library(1000);
  shelf.want(0, 50);
  shelf.want(500, 550);
  await settle();
  expect(aborted).toEqual(['']);
  expect(shelf.itemAt(0)).toBeUndefined();
  expect(shelf.itemAt(500)?.id).toBe('i500');
});

test('what was begun near the view is read to its end, once', async () => {
  const { shelf, calls, aborted } = library(1000);
  shelf.want(0, 350);
  shelf.want(10, 150);
  shelf.want(20, 350);
  await settle();
  expect(aborted).toEqual([]);
  expect(calls).toEqual([undefined, '100', '200', '300']);
  expect(shelf.itemAt(300)?.id).toBe('i300');
});

test('parts that are far away are forgotten', async () => {
  const { shelf } = library(10_000);
  for (let from = 0; from < 10_000; from += 100) {
    shelf.want(from, from + 100);
    await settle();
  }
  expect(shelf.itemAt(0)).toBeUndefined();
  expect(shelf.itemAt(9_900)?.id).toBe('i9900');
});

test('what is removed closes the gap, and comes back to its place', async () => {
  const { shelf } = library(300);
  await shelf.read(0, 300);
  shelf.want(0, 300);
  await settle();
  const undo = shelf.remove(new Set(['i1', 'i150']));
  expect(shelf.total).toBe(298);
  expect(shelf.itemAt(1)?.id).toBe('i2');
  expect(shelf.itemAt(149)?.id).toBe('i151');

  undo(new Set(['i1', 'i150']));
  expect(shelf.total).toBe(300);
  expect([0, 1, 2, 149, 150, 151].map((index) => shelf.itemAt(index)?.id)).toEqual([
    'i0',
    'i1',
    'i2',
    'i149',
    'i150',
    'i151',
  ]);
});

test('an item is found by its time, wherever it is', async () => {
  const { shelf, calls } = library(100_000);
  expect(await shelf.locate('i77777', item(77_777).created)).toBe(77_777);
  expect(calls).toEqual(['77700']);
  expect(await shelf.locate('gone', item(77_777).created)).toBe(-1);
});

test('a range is read over several parts', async () => {
  const { shelf } = library(1000);
  const items = await shelf.read(95, 305);
  expect(items.length).toBe(210);
  expect(items[0]?.id).toBe('i95');
  expect(items.at(-1)?.id).toBe('i304');
});

test('uploads are read on towards the end of what is known', async () => {
  const { readPage, calls } = library(250);
  const shelf = new GrowingShelf({ items: [item(0)], next: '1' }, readPage);
  shelf.want(0, 1);
  await settle();
  expect(shelf.total).toBe(101);
  expect(shelf.complete).toBe(false);

  expect(await shelf.locate('i249')).toBe(249);
  expect(shelf.complete).toBe(true);
  expect(calls).toEqual(['1', '101', '201']);
});

test('a new upload comes first, and a removed one comes back to its place', () => {
  const shelf = new GrowingShelf({ items: [item(1), item(2), item(3)], next: undefined }, async () => ({
    items: [],
    next: undefined,
  }));
  const undo = shelf.remove(new Set(['i2']));
  shelf.prepend(item(0));
  undo(new Set(['i2']));
  expect([0, 1, 2, 3].map((index) => shelf.itemAt(index)?.id)).toEqual(['i0', 'i1', 'i2', 'i3']);
});
