import { expect, test } from 'vitest';
import { filterSettings, type Setting } from './filter';

const setting = (name: string, value: string | null, source: Setting['source']): Setting => ({
  name,
  value,
  source,
  secret: value === null,
  is_set: true,
  description: `The meaning of ${name}.`,
});
const settings = [
  setting('limits.active_runs', '10', 'default'),
  setting('listen', ':8080', 'file'),
  setting('mail.password', null, 'environment'),
];
const namesOf = (query: string, changed: boolean) => filterSettings(settings, query, changed).map((one) => one.name);

test('filterSettings finds words in names, values and meanings', () => {
  expect(namesOf('runs meaning', false)).toEqual(['limits.active_runs']);
  expect(namesOf('8080', false)).toEqual(['listen']);
  expect(namesOf('', false)).toHaveLength(3);
  expect(namesOf('nothing', false)).toEqual([]);
});

test('filterSettings can leave defaults out', () => {
  expect(namesOf('', true)).toEqual(['listen', 'mail.password']);
});
