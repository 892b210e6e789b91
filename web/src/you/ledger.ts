import type { Schemas } from '../api/client';
import { text } from '../text/you';

type Day = Schemas['LedgerDay'];
type Entry = Pick<Schemas['LedgerEntry'], 'kind' | 'tokens' | 'tool_name'>;

/** Measure is the figure of a day that the chart shows. */
export type Measure = 'spent' | 'received' | 'balance';

const short = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const long = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long', timeZone: 'UTC' });

/** dayLabel writes a day such as 2026-11-16 for the axis of a chart. */
export const dayLabel = (day: string) => short.format(new Date(`${day}T00:00:00Z`));

/** dayTitle writes a day such as 2026-11-16 with its weekday. */
export const dayTitle = (day: string) => long.format(new Date(`${day}T00:00:00Z`));

/** sumDays adds up what was received and spent on some days. */
export function sumDays(days: Day[]): { received: number; spent: number; entries: number } {
  const sums = { received: 0, spent: 0, entries: 0 };

  for (const day of days) {
    sums.received += day.received;
    sums.spent += day.spent;
    sums.entries += day.entries;
  }

  return sums;
}

/** entryName says in words why tokens moved. */
export function entryName(entry: Entry): string {
  if (entry.kind === 'settle') {
    return text.runOf(entry.tool_name ?? text.unknownTool);
  }
  if (entry.kind === 'grant' && entry.tokens < 0) {
    return text.kinds.taken ?? entry.kind;
  }
  return text.kinds[entry.kind] ?? entry.kind;
}
