import { text } from '../text/reports';
import { lastOfMonth, monthBefore, type Span } from './span';

const monthName = new Intl.DateTimeFormat(undefined, { month: 'long', timeZone: 'UTC' });
const monthAndYear = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric', timeZone: 'UTC' });
const shortDay = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const dayAndYear = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
});
const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long', timeZone: 'UTC' });

const at = (day: string) => new Date(`${day}T00:00:00Z`);

/** labelDays writes days below a chart: each is different, with the year where they are of several years. */
export function labelDays(days: string[]): string[] {
  const years = new Set(days.map((day) => day.slice(0, 4)));
  const format = years.size > 1 ? dayAndYear : shortDay;

  return days.map((day) => format.format(at(day)));
}

/** titleDay writes a day with its weekday. */
export const titleDay = (day: string) => weekday.format(at(day));

/** nameSpan writes a span as people call it: October, 1–16 Nov, or 3 Oct 2025 – 2 Feb 2026. */
export function nameSpan(span: Span, today: string): string {
  const isMonth = span.first.endsWith('-01') && span.last === lastOfMonth(span.first);
  const thisYear = span.first.slice(0, 4) === today.slice(0, 4);
  if (isMonth) {
    return (thisYear ? monthName : monthAndYear).format(at(span.first));
  }
  return (thisYear ? shortDay : dayAndYear).formatRange(at(span.first), at(span.last));
}

/** listSpans returns the spans to choose from, as the address writes them. */
export function listSpans(today: string): Array<{ value: string; label: string }> {
  return [
    { value: '', label: text.spans.month },
    { value: monthBefore(today), label: monthName.format(at(`${monthBefore(today)}-01`)) },
    { value: '7d', label: text.spans.days7 },
    { value: '30d', label: text.spans.days30 },
    { value: '90d', label: text.spans.days90 },
    { value: today.slice(0, 4), label: text.spans.year },
  ];
}
