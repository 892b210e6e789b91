import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';
import { type AllRows, readAll } from '../data/list';
import { text } from '../text/reports';
import type { Report } from './report';
import { type Group, idOf, type NamedRows, nameOf, rankRows, splitRows, type UsageCount, type UsageRow } from './usage';

type Query = Report['query'];

/** The number of groups that a chart shows by name; the rest are others. */
const namedGroups = 4;

// The same calls can answer with CSV; without `format` they answer with JSON.

const readUsage = async (query: Query, groupBy: string, limit: number, cursor?: string) => {
  const parameters = { ...query, group_by: groupBy, limit, cursor };
  return dataOf(await api.GET('/reports/usage', { params: { query: parameters } })) as Schemas['UsageReport'];
};

/** readRuns reads a page of the runs of a report, the newest first. */
export const readRuns = async (query: Query, cursor?: string) => {
  const parameters = { ...query, limit: 20, cursor };
  return dataOf(await api.GET('/reports/runs', { params: { query: parameters } })) as Schemas['RunReport'];
};

const readRows = (query: Query, groupBy: string): Promise<AllRows<UsageRow>> =>
  readAll((cursor) => readUsage(query, groupBy, 100, cursor));

/** Sums are the figures of a span and of the one before. */
export type Sums = { now: UsageCount; before: UsageCount; people: number; morePeople: boolean };

/** useSums reads the figures of a report. */
export function useSums(report: Report) {
  return useQuery({
    queryKey: ['report', 'sums', report.query, report.queryBefore],
    queryFn: async (): Promise<Sums> => {
      const [now, before] = await Promise.all([
        readUsage(report.query, 'person', 100),
        readUsage(report.queryBefore, 'day', 1),
      ]);
      return { now: now.totals, before: before.totals, people: now.data.length, morePeople: now.has_more };
    },
  });
}

/** useGroups reads the sums of each group of a report, the dearest first. */
export function useGroups(report: Report) {
  return useQuery({
    queryKey: ['report', 'groups', report.group, report.query],
    queryFn: async (): Promise<AllRows<UsageRow>> => {
      const all = await readRows(report.query, report.group);
      return { ...all, rows: rankRows(all.rows, report.group) };
    },
  });
}

/** Days are the sums by day: of all runs, and of the dearest groups. */
export type Days = { total: UsageRow[]; named: NamedRows[] };

/**
 * useDays reads the sums by day. The dearest groups are read one by one with a filter: a company of thousands of people
 * then takes no more calls than a small one. Apps and flows are few, and are read together: there is no filter for apps,
 * and the filter for the tool of a flow leaves out its steps.
 */
export function useDays(report: Report, ranked: UsageRow[] | undefined) {
  const top = (ranked ?? []).slice(0, namedGroups);
  const ids = top.map((row) => idOf(row, report.group));

  return useQuery({
    queryKey: ['report', 'days', report.group, report.query, ids],
    enabled: ranked !== undefined,
    queryFn: async (): Promise<Days> => {
      const total = readRows(report.query, 'day');
      const named =
        report.group === 'plugin' || report.group === 'flow'
          ? readTogether(report, top)
          : Promise.all(top.map((row) => readGroup(report, row)));
      return { total: (await total).rows, named: (await named).filter((one) => one !== undefined) };
    },
  });
}

async function readTogether({ query, group }: Report, top: UsageRow[]): Promise<NamedRows[]> {
  const all = await readRows(query, `day,${group}`);
  const ranked = top.map((row) => ({ id: idOf(row, group), name: nameOf(row, group, text.unnamed[group]) }));

  return splitRows(all.rows, group, ranked);
}

async function readGroup({ query, group }: Report, row: UsageRow): Promise<NamedRows | undefined> {
  const filter = filterOf(row, group);
  if (!filter) {
    return undefined;
  }
  const all = await readRows({ ...query, ...filter }, 'day');

  return { name: nameOf(row, group, text.unnamed[group]), rows: all.rows };
}

/** filterOf returns the filter of a report for the group of a row; a deleted person, a flow and an app have none. */
export function filterOf(row: UsageRow, group: Group): Partial<Query> | undefined {
  switch (group) {
    case 'team':
      return { team_id: row.team_id };
    case 'tool':
      return { tool_id: row.tool_id };
    case 'person':
      return row.email ? { email: row.email } : undefined;
    case 'flow':
    case 'plugin':
      return undefined;
  }
}
