import type { Schemas } from '../api/client';
import type { BarSeries } from '../ui/Bars';

export type UsageRow = Schemas['UsageRow'];
export type UsageCount = Schemas['UsageCount'];

/** Group is what a report is divided by. */
export const groups = ['team', 'person', 'tool', 'flow', 'plugin'] as const;
export type Group = (typeof groups)[number];

/** idOf returns what tells the groups of a report apart. */
export function idOf(row: UsageRow, group: Group): string {
  const ids = { team: row.team_id, person: row.uid, tool: row.tool_id, flow: row.flow_id, plugin: row.plugin };

  return ids[group] ?? '';
}

/** nameOf returns the name of the group of a row; `unnamed` where it has none. */
export function nameOf(row: UsageRow, group: Group, unnamed: string): string {
  const names = {
    team: row.team_name,
    person: row.person,
    tool: row.tool_name,
    flow: row.flow_name,
    plugin: row.plugin,
  };

  return names[group] || unnamed;
}

/** rankRows sorts the rows of a report: those that cost most first, then those with most runs, then by name. */
export function rankRows(rows: UsageRow[], group: Group): UsageRow[] {
  return rows.toSorted(
    (a, b) =>
      b.tokens_charged - a.tokens_charged ||
      b.runs - a.runs ||
      nameOf(a, group, '').localeCompare(nameOf(b, group, '')),
  );
}

/** NamedRows are the rows by day of one group. */
export type NamedRows = { name: string; rows: UsageRow[] };

/** splitRows divides rows by day and group into the groups, in the order of the ranked ids; the names are theirs. */
export function splitRows(rows: UsageRow[], group: Group, ranked: Array<{ id: string; name: string }>): NamedRows[] {
  return ranked.map(({ id, name }) => ({ name, rows: rows.filter((row) => idOf(row, group) === id) }));
}

/** distinctNames makes names that occur several times differ, so that each has its own entry in a legend. */
export function distinctNames(names: string[]): string[] {
  const counts = new Map<string, number>();

  return names.map((name) => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count === 1 ? name : `${name} (${count})`;
  });
}

/**
 * stackSeries makes the series of a chart: the named groups, and below the name `others` what all groups together have
 * more than those.
 */
export function stackSeries(days: string[], total: UsageRow[], named: NamedRows[], others: string): BarSeries[] {
  const valuesOf = (rows: UsageRow[]) => {
    const byDay = new Map(rows.map((row) => [row.day, row.tokens_charged]));
    return days.map((day) => byDay.get(day) ?? 0);
  };
  const names = distinctNames(named.map((one) => one.name));
  const series: BarSeries[] = named.map((one, at) => ({
    name: names[at] ?? one.name,
    color: ((at % 4) + 1) as BarSeries['color'],
    values: valuesOf(one.rows),
  }));

  const rest = valuesOf(total).map((value, at) =>
    Math.max(0, value - series.reduce((sum, one) => sum + (one.values[at] ?? 0), 0)),
  );
  if (rest.some((value) => value > 0)) {
    series.push({ name: others, color: 5, values: rest });
  }

  return series;
}

/** changeOf returns by which part a figure has grown; undefined if there was nothing before. */
export const changeOf = (now: number, before: number) => (before === 0 ? undefined : (now - before) / before);

/** successOf returns the part of runs that succeeded; undefined without runs. Cancelled runs do not count. */
export function successOf(count: Pick<UsageCount, 'succeeded' | 'failed'>): number | undefined {
  const ended = count.succeeded + count.failed;

  return ended === 0 ? undefined : count.succeeded / ended;
}

/** csvName returns the name of a file with a report. */
export function csvName(kind: 'usage' | 'runs', company: string, span: { first: string; last: string }): string {
  const name = company
    .normalize('NFKD')
    .replace(/[^\w\s-]/g, '')
    .trim()
    .replace(/\s+/g, '-')
    .toLowerCase();

  return [kind, name, span.first, span.last].filter(Boolean).join('-').concat('.csv');
}
