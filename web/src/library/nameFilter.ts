import { text } from '../text/library';
import { formatDay } from '../ui/format';
import type { FilterName, Filters } from './filters';

/** nameTime writes the chosen time, or undefined if any time is. */
export function nameTime({ span, from, until }: Filters): string | undefined {
  if (span) {
    return text.spans[span];
  }
  const day = (value: string) => formatDay(new Date(`${value}T00:00`));
  if (from && until) {
    return text.daysBetween(day(from), day(until));
  }
  if (from) {
    return text.daysFrom(day(from));
  }
  return until && text.daysUntil(day(until));
}

/** nameFilter writes what a filter is set to; names of tools and models are looked up by the caller. */
export function nameFilter(name: FilterName, filters: Filters, nameOf: (id: string) => string | undefined): string {
  switch (name) {
    case 'type':
      return text.kinds[filters.type ?? 'ALL'];
    case 'words':
      return text.words(filters.words ?? '');
    case 'favorites':
      return text.favorites;
    case 'tool':
      return nameOf(filters.tool ?? '') ?? text.fallbackFilter.tool;
    case 'family':
      return nameOf(filters.family ?? '') ?? text.fallbackFilter.family;
    case 'shape':
      return text.shapes[filters.shape ?? 'OTHER'];
    case 'size':
      return text.sizes[filters.size ?? '1K'];
    case 'time':
      return nameTime(filters) ?? text.anyTime;
  }
}
