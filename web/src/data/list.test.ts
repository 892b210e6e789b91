import { expect, test } from 'vitest';
import { readAll } from './list';

const pages: Record<string, { data: number[]; next_cursor: string | null }> = {
  first: { data: [1, 2], next_cursor: 'second' },
  second: { data: [3], next_cursor: 'third' },
  third: { data: [4], next_cursor: null },
};
const readPage = async (cursor: string | undefined) => pages[cursor ?? 'first'] ?? { data: [], next_cursor: null };

test('readAll follows the cursors to the end', async () => {
  expect(await readAll(readPage)).toEqual({ rows: [1, 2, 3, 4], complete: true });
});

test('readAll says that it has stopped before the end', async () => {
  expect(await readAll(readPage, 2)).toEqual({ rows: [1, 2, 3], complete: false });
});
