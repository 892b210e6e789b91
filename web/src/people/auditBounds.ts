/** boundsOf returns the moments between which acts are listed, for days of this browser's clock; both days belong to it. */
export function boundsOf(from: string, until: string): { start_utc?: string; end_utc?: string } {
  return { start_utc: momentOf(from, 0), end_utc: momentOf(until, 1) };
}

function momentOf(day: string, later: number): string | undefined {
  const [, year, month, date] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day) ?? [];
  if (!year) {
    return undefined;
  }
  return new Date(Number(year), Number(month) - 1, Number(date) + later).toISOString();
}
