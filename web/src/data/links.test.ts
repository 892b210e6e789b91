import { expect, test } from 'vitest';
import { inputLink, readInputLink, readResultId, resultLink, runAgainLink } from './links';

test('an input is read from its address, though its id has a colon', () => {
  const link = inputLink('LIBRARY_REF', 'abc:def', 'team1');
  const search = new URLSearchParams(link.split('?')[1]);
  expect(search.get('team')).toBe('team1');
  expect(readInputLink(search.get('input'))).toEqual({ kind: 'LIBRARY_REF', id: 'abc:def' });
});

test('what names no input is refused', () => {
  for (const input of [null, '', 'abc', 'FILE:abc', 'LIBRARY_REF:']) {
    expect(readInputLink(input)).toBeUndefined();
  }
});

test('links to a run and a result', () => {
  expect(runAgainLink('tool', 'run', undefined)).toBe('/create/tool?from=run');
  expect(resultLink('a:b', undefined)).toBe('/library/a%3Ab');
});

test('the id of a result is read from its address', () => {
  expect(readResultId('a%3Ab')).toBe('a:b');
  expect(readResultId('a:b')).toBe('a:b');
  expect(readResultId('%E0%A4%A')).toBe('%E0%A4%A');
});
