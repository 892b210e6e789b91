import { expect, test } from 'vitest';
import { activeFilters, dropFilter, queryOf, readFilters, writeFilters } from './filters';

const read = (query: string) => readFilters(new URLSearchParams(query));
const now = new Date(2026, 10, 16, 15, 30);

test('filters are read from the address, and what is not understood is left out', () => {
  expect(read('type=VID&q=red+fox&favourites=1&shape=16:9&size=4K%2B&sort=oldest')).toMatchObject({
    type: 'VID',
    words: 'red fox',
    favorites: true,
    shape: '16:9',
    size: '4K+',
    oldest: true,
  });
  expect(activeFilters(read('type=NO&shape=5:5&size=9K&span=ever&from=yesterday&favourites=no'))).toEqual([]);
});

test('filters that are written are read again', () => {
  const filters = read(
    'type=IMG&q=owl&favourites=1&tool=T&family=F&shape=1:1&size=1K&from=2026-01-01&until=2026-02-01&sort=oldest',
  );
  const search = new URLSearchParams(writeFilters(filters) as Record<string, string>);
  search.delete('span');
  expect(readFilters(search)).toEqual(filters);
});

test('the last day is a part of the time', () => {
  const query = queryOf(read('from=2026-10-01&until=2026-10-31'), undefined, now);
  expect(query.start_utc).toBe(new Date(2026, 9, 1).toISOString());
  expect(query.end_utc).toBe(new Date(2026, 10, 1).toISOString());
});

test('a span begins with a day', () => {
  expect(queryOf(read('span=week'), undefined, now).start_utc).toBe(new Date(2026, 10, 10).toISOString());
  expect(queryOf(read('span=today'), undefined, now).start_utc).toBe(new Date(2026, 10, 16).toISOString());
});

test('dropping a filter leaves the others', () => {
  const filters = read('q=owl&from=2026-01-01&type=IMG');
  expect(activeFilters(filters)).toEqual(['type', 'words', 'time']);
  expect(activeFilters({ ...filters, ...dropFilter('time') })).toEqual(['type', 'words']);
  expect(activeFilters({ ...filters, ...dropFilter('words') })).toEqual(['type', 'time']);
});
