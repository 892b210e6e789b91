// Spans of days in a company's time zone. Days are written as 2026-11-16; both ends belong to a span.

/** Span is a number of days in a row. */
export type Span = { first: string; last: string };

const day = 86_400_000;
const toTime = (date: string) => Date.parse(`${date}T00:00:00Z`);
const toDate = (time: number) => new Date(time).toISOString().slice(0, 10);

/** addDays returns the day that is a number of days later. */
export const addDays = (date: string, count: number) => toDate(toTime(date) + count * day);

/** countDays returns the number of days of a span. */
export const countDays = (span: Span) => Math.round((toTime(span.last) - toTime(span.first)) / day) + 1;

/** listDays returns every day of a span. */
export const listDays = (span: Span) => Array.from({ length: countDays(span) }, (_, at) => addDays(span.first, at));

/** lastOfMonth returns the last day of the month of a day. */
export function lastOfMonth(date: string): string {
  const [year = 0, month = 1] = date.split('-').map(Number);

  return toDate(Date.UTC(year, month, 0));
}

/** isDay reports whether a text is a real day such as 2026-11-16. */
export const isDay = (text: string) =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(toTime(text)) && toDate(toTime(text)) === text;

/**
 * readSpan reads the span that an address names: `2026-10` is a month, `2026` a year, `30d` the last 30 days, and
 * `2026-10-03..2026-10-15` any days. Everything else is the current month. Days to come are left out.
 */
export function readSpan(text: string, today: string): Span {
  const cut = (span: Span): Span =>
    span.first > today ? span : { ...span, last: span.last < today ? span.last : today };
  const days = /^(\d{1,3})d$/.exec(text)?.[1];
  const [from = '', to = ''] = text.split('..');

  if (days && Number(days) > 0) {
    return { first: addDays(today, 1 - Number(days)), last: today };
  }
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) {
    return cut({ first: `${text}-01`, last: lastOfMonth(`${text}-01`) });
  }
  if (/^\d{4}$/.test(text)) {
    return cut({ first: `${text}-01-01`, last: `${text}-12-31` });
  }
  if (isDay(from) && isDay(to) && from <= to) {
    return { first: from, last: to };
  }
  return { first: `${today.slice(0, 7)}-01`, last: today };
}

/** monthBefore returns the month before the month of a day, as 2026-10. */
export const monthBefore = (date: string) => addDays(`${date.slice(0, 7)}-01`, -1).slice(0, 7);

/**
 * spanBefore returns the span to compare with: for a month the month before, for its first days as many of the month
 * before, and for other spans as many days before them.
 */
export function spanBefore(span: Span): Span {
  const isMonthStart = span.first.endsWith('-01') && span.last <= lastOfMonth(span.first);
  if (!isMonthStart) {
    const count = countDays(span);
    return { first: addDays(span.first, -count), last: addDays(span.first, -1) };
  }

  const first = `${monthBefore(span.first)}-01`;
  const end = lastOfMonth(first);
  const sameDay = `${first.slice(0, 7)}-${span.last.slice(8)}`;
  const whole = span.last === lastOfMonth(span.first) || sameDay > end;

  return { first, last: whole ? end : sameDay };
}

/** startIn returns the moment at which a day begins in a time zone, in the form of the API. */
export function startIn(zone: string, date: string): string {
  const wanted = toTime(date);
  let moment = wanted;

  // The offset of the zone can differ between the guess and the right moment, where clocks change: guess twice.
  for (let round = 0; round < 2; round += 1) {
    moment = wanted - offsetAt(zone, moment);
  }

  return new Date(moment).toISOString().replace('.000Z', 'Z');
}

function offsetAt(zone: string, moment: number): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(moment);
  const value = (type: string) => Number(parts.find((part) => part.type === type)?.value);

  return (
    Date.UTC(value('year'), value('month') - 1, value('day'), value('hour'), value('minute'), value('second')) -
    Math.floor(moment / 1000) * 1000
  );
}

/** boundsIn returns the start and the end of a span in a time zone, in the form of the API; the end does not belong to it. */
export const boundsIn = (zone: string, span: Span) => ({
  start_utc: startIn(zone, span.first),
  end_utc: startIn(zone, addDays(span.last, 1)),
});
