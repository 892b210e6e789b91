import { expect, test } from 'vitest';
import {
  changeOf,
  csvName,
  distinctNames,
  nameOf,
  rankRows,
  splitRows,
  stackSeries,
  successOf,
  type UsageRow,
} from './usage';

const count = {
  runs: 1,
  succeeded: 1,
  failed: 0,
  cancelled: 0,
  results: 1,
  free_allowance_used: 0,
  generation_seconds: 2,
};
const row = (day: string, team: string, tokens: number): UsageRow => ({
  ...count,
  day,
  team_id: team,
  team_name: `Team ${team}`,
  tokens_charged: tokens,
});

test('rankRows puts the dearest first, and equals by runs and name', () => {
  const rows = [row('', 'a', 1), row('', 'c', 5), { ...row('', 'd', 1), runs: 9 }, row('', 'b', 1)];
  expect(rankRows(rows, 'team').map((one) => one.team_id)).toEqual(['c', 'd', 'a', 'b']);
});

test('rankRows and splitRows know flows', () => {
  const flow = (day: string, id: string, tokens: number): UsageRow => ({
    ...count,
    day,
    flow_id: id,
    flow_name: id === 'gone' ? null : `Flow ${id}`,
    tokens_charged: tokens,
  });
  const rows = [flow('2026-11-01', 'a', 1), flow('2026-11-01', 'gone', 3), flow('2026-11-02', 'a', 2)];
  expect(rankRows(rows.slice(0, 2), 'flow').map((one) => nameOf(one, 'flow', 'Gone'))).toEqual(['Gone', 'Flow a']);
  expect(splitRows(rows, 'flow', [{ id: 'a', name: 'Flow a' }])).toEqual([
    { name: 'Flow a', rows: [rows[0], rows[2]] },
  ]);
});

test('stackSeries fills days without rows and adds what the named groups leave over', () => {
  const days = ['2026-11-01', '2026-11-02', '2026-11-03'];
  const total = [row('2026-11-01', '', 10), row('2026-11-03', '', 4)];
  const rows = [row('2026-11-01', 'a', 6), row('2026-11-03', 'a', 4), row('2026-11-01', 'b', 1)];
  const named = splitRows(rows, 'team', [
    { id: 'a', name: 'Look' },
    { id: 'b', name: 'Look' },
  ]);

  expect(stackSeries(days, total, named, 'Others')).toEqual([
    { name: 'Look', color: 1, values: [6, 0, 4] },
    { name: 'Look (2)', color: 2, values: [1, 0, 0] },
    { name: 'Others', color: 5, values: [3, 0, 0] },
  ]);
});

test('stackSeries has no others where the named groups are everything', () => {
  const rows = [row('2026-11-01', 'a', 6)];
  expect(stackSeries(['2026-11-01'], rows, [{ name: 'Look', rows }], 'Others')).toHaveLength(1);
});

test('distinctNames leaves different names alone', () => {
  expect(distinctNames(['a', 'b', 'a', 'a'])).toEqual(['a', 'b', 'a (2)', 'a (3)']);
});

test('changeOf and successOf have no value where there is nothing to divide by', () => {
  expect(changeOf(112, 100)).toBeCloseTo(0.12);
  expect(changeOf(5, 0)).toBeUndefined();
  expect(successOf({ succeeded: 982, failed: 18 })).toBeCloseTo(0.982);
  expect(successOf({ succeeded: 0, failed: 0 })).toBeUndefined();
});

test('csvName is a name that every system can store', () => {
  const span = { first: '2026-10-01', last: '2026-10-31' };
  expect(csvName('usage', 'Studio Fox', span)).toBe('usage-studio-fox-2026-10-01-2026-10-31.csv');
  expect(csvName('runs', 'Ätna / Süd: ☃', span)).toBe('runs-atna-sud-2026-10-01-2026-10-31.csv');
  expect(csvName('runs', '☃', span)).toBe('runs-2026-10-01-2026-10-31.csv');
});
