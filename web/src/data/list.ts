import { useInfiniteQuery } from '@tanstack/react-query';

/** Page is one page of a list of the service. */
export type Page<T> = { data: T[]; next_cursor: string | null };

/** List is what has been read of a list so far. */
export type List<T> = {
  /** The rows of all pages read so far; absent before the first page. */
  rows: T[] | undefined;
  error: unknown;
  hasMore: boolean;
  loadingMore: boolean;
  readMore: () => void;
  retry: () => void;
};

/** useList reads a list of the service a page at a time. */
export function useList<T>(
  key: unknown[],
  readPage: (cursor: string | undefined) => Promise<Page<T>>,
  { enabled = true, refetchInterval }: { enabled?: boolean; refetchInterval?: number } = {},
): List<T> {
  const query = useInfiniteQuery({
    queryKey: key,
    enabled,
    refetchInterval,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<T>) => page.next_cursor ?? undefined,
    queryFn: ({ pageParam }) => readPage(pageParam),
  });

  return {
    rows: query.data?.pages.flatMap((page) => page.data),
    error: query.error,
    hasMore: query.hasNextPage,
    loadingMore: query.isFetchingNextPage,
    readMore: () => void query.fetchNextPage(),
    retry: () => void query.refetch(),
  };
}

/** AllRows are the rows of a list that was read to its end, or up to a number of pages. */
export type AllRows<T> = { rows: T[]; complete: boolean };

/** readAll reads a list to its end, but no more than a number of pages. */
export async function readAll<T>(
  readPage: (cursor: string | undefined) => Promise<Page<T>>,
  mostPages = 20,
): Promise<AllRows<T>> {
  const rows: T[] = [];
  let cursor: string | undefined;

  for (let count = 0; count < mostPages; count += 1) {
    const page = await readPage(cursor);
    rows.push(...page.data);
    cursor = page.next_cursor ?? undefined;
    if (!cursor) {
      return { rows, complete: true };
    }
  }

  return { rows, complete: false };
}
