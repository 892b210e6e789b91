import type { Schemas } from '../api/client';
import type { operations } from '../api/schema';

export type LibraryQuery = NonNullable<operations['listLibrary']['parameters']['query']>;

export const mediums = ['IMG', 'VID', 'AUDIO', 'ASSET_3D'] as const;
export const shapes: Array<Schemas['AspectRatio']> = [
  '1:1',
  '4:3',
  '3:2',
  '16:9',
  '2:1',
  '21:9',
  '3:4',
  '2:3',
  '9:16',
  'OTHER',
];
export const sizes: Array<Schemas['Resolution']> = ['1K', '2K', '4K+'];
export const spans = ['today', 'week', 'month', 'year'] as const;

export type Medium = (typeof mediums)[number];
export type Span = (typeof spans)[number];

/** Filters are what the library's address asks for. */
export type Filters = {
  type?: Medium;
  words?: string;
  favorites?: boolean;
  tool?: string;
  family?: string;
  shape?: Schemas['AspectRatio'];
  size?: Schemas['Resolution'];
  span?: Span;
  /** The first and the last day, such as 2026-11-05. */
  from?: string;
  until?: string;
  oldest?: boolean;
};

/** FilterName is a filter that can be dropped; the order of the list is none. */
export type FilterName = 'type' | 'words' | 'favorites' | 'tool' | 'family' | 'shape' | 'size' | 'time';

const oneOf = <T extends string>(value: string | null, allowed: readonly T[]): T | undefined =>
  allowed.find((one) => one === value);

const dayOf = (value: string | null): string | undefined =>
  value && /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(new Date(value).getTime()) ? value : undefined;

/** readFilters reads the filters from the address; what is not understood is left out. */
export function readFilters(search: URLSearchParams): Filters {
  return {
    type: oneOf(search.get('type'), mediums),
    words: search.get('q')?.slice(0, 200) || undefined,
    favorites: search.get('favourites') === '1' || undefined,
    tool: search.get('tool') ?? undefined,
    family: search.get('family') ?? undefined,
    shape: oneOf(search.get('shape'), shapes),
    size: oneOf(search.get('size'), sizes),
    span: oneOf(search.get('span'), spans),
    from: dayOf(search.get('from')),
    until: dayOf(search.get('until')),
    oldest: search.get('sort') === 'oldest' || undefined,
  };
}

/** writeFilters returns the changes of the address that some filters need. */
export function writeFilters(change: Filters): Record<string, string | undefined> {
  const names: Record<keyof Filters, string> = {
    type: 'type',
    words: 'q',
    favorites: 'favourites',
    tool: 'tool',
    family: 'family',
    shape: 'shape',
    size: 'size',
    span: 'span',
    from: 'from',
    until: 'until',
    oldest: 'sort',
  };
  const parameterOf = (name: keyof Filters): string | undefined => {
    if (name === 'favorites') {
      return change.favorites ? '1' : undefined;
    }
    if (name === 'oldest') {
      return change.oldest ? 'oldest' : undefined;
    }
    return change[name];
  };

  return Object.fromEntries(
    (Object.keys(change) as Array<keyof Filters>).map((name) => [names[name], parameterOf(name)]),
  );
}

function startOfSpan(span: Span, now: Date): Date {
  const days: Record<Span, number> = { today: 0, week: 6, month: 29, year: 364 };

  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days[span]);
}

/** startOfDay returns the moment when a day such as 2026-11-05 begins here, `later` days afterwards. */
function startOfDay(day: string, later = 0): Date {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);

  return new Date(year, month - 1, date + later);
}

/** queryOf writes filters as parameters of the library's calls. */
export function queryOf(filters: Filters, teamId: string | undefined, now: Date): LibraryQuery {
  const start = filters.span ? startOfSpan(filters.span, now) : filters.from ? startOfDay(filters.from) : undefined;
  const end = !filters.span && filters.until ? startOfDay(filters.until, 1) : undefined;

  return {
    team_id: teamId,
    q: filters.words,
    type: filters.type,
    tool_id: filters.tool,
    model_family_tool_tag_id: filters.family,
    aspect_ratio: filters.shape,
    resolution: filters.size,
    favorited: filters.favorites,
    start_utc: start?.toISOString(),
    end_utc: end?.toISOString(),
    sort: filters.oldest ? 'oldest' : undefined,
  };
}

/** activeFilters lists the filters that leave something out. */
export function activeFilters(filters: Filters): FilterName[] {
  const names: FilterName[] = ['type', 'words', 'favorites', 'tool', 'family', 'shape', 'size'];
  const active = names.filter((name) => name !== 'time' && filters[name] !== undefined);

  return filters.span || filters.from || filters.until ? [...active, 'time'] : active;
}

/** dropFilter returns the change that takes one filter away. */
export function dropFilter(name: FilterName): Filters {
  return name === 'time' ? { span: undefined, from: undefined, until: undefined } : { [name]: undefined };
}
