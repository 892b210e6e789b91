import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, dataOf } from '../api/client';
import { type Filters, type LibraryQuery, queryOf, readFilters } from './filters';
import { itemOfResult, itemOfUpload } from './items';
import { Places } from './places';
import { readPosition } from './positions';
import { GrowingShelf, PlacedShelf, pageSize, type ReadPage } from './shelf';

const readResults =
  (query: LibraryQuery): ReadPage =>
  async (cursor, limit, signal) => {
    const page = dataOf(await api.GET('/library', { params: { query: { ...query, cursor, limit } }, signal }));

    return { items: page.data.map(itemOfResult), next: page.next_cursor ?? undefined };
  };

/** readMarks reads where the list of a query can be entered, and how long it is. */
export async function readMarks(query: LibraryQuery, every: number, signal: AbortSignal) {
  return dataOf(await api.GET('/library/marks', { params: { query: { ...query, every } }, signal }));
}

/** listName is the name of a list, under which its position is remembered. */
export function listName(search: URLSearchParams, teamId: string | undefined): string {
  return JSON.stringify({ team: teamId, view: search.get('view') ?? undefined, filters: readFilters(search) });
}

/** useResults reads the results that fit the filters of the address. The first page is shown at once; the places that lead into the middle of a long list follow, and all other items are read as they come into view. */
export function useResults(search: URLSearchParams, teamId: string | undefined, enabled: boolean) {
  const cache = useQueryClient();
  const name = listName(search, teamId);
  const query = useMemo(() => {
    const { filters, team } = JSON.parse(name) as { filters: Filters; team: string | undefined };
    return queryOf(filters, team, new Date());
  }, [name]);
  const readPage = useMemo(() => readResults(query), [query]);

  const first = useQuery({
    queryKey: ['library-first', name],
    enabled,
    staleTime: 20_000,
    gcTime: 0,
    queryFn: ({ signal }) => readPage(undefined, pageSize, signal),
  });
  const placed = useQuery({
    queryKey: ['library-shelf', name],
    enabled,
    staleTime: 20_000,
    gcTime: 120_000,
    structuralSharing: false,
    queryFn: async ({ signal }) => {
      const options = {
        queryKey: ['library-first', name],
        queryFn: () => readPage(undefined, pageSize, signal),
        staleTime: 2000,
      };
      const [marks, page] = await Promise.all([readMarks(query, pageSize, signal), cache.fetchQuery(options)]);
      const shelf = new PlacedShelf(new Places(marks), readPage, page.items);

      // What was in view when the list was left is read before the list is shown again.
      const { index } = readPosition(name);
      if (index > 0 && index < shelf.total) {
        await shelf.read(index, Math.min(shelf.total, index + pageSize));
      }
      return shelf;
    },
  });

  const beginning = useMemo(() => first.data && new GrowingShelf(first.data, readPage), [first.data, readPage]);
  const isAtTop = readPosition(name).index === 0;

  return { ...placed, data: placed.data ?? (isAtTop ? beginning : undefined) };
}

/** useUploads reads the account's uploads. */
export function useUploads(search: URLSearchParams, teamId: string | undefined, enabled: boolean) {
  const { type } = readFilters(search);

  return useQuery({
    queryKey: ['upload-shelf', teamId, type],
    enabled,
    staleTime: 20_000,
    gcTime: 120_000,
    structuralSharing: false,
    queryFn: async ({ signal }) => {
      const readPage: ReadPage = async (cursor, limit, stop) => {
        const query = { team_id: teamId, type, cursor, limit };
        const page = dataOf(await api.GET('/uploads', { params: { query }, signal: stop }));
        return { items: page.data.map(itemOfUpload), next: page.next_cursor ?? undefined };
      };

      return new GrowingShelf(await readPage(undefined, pageSize, signal), readPage);
    },
  });
}
