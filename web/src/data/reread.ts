import type { QueryClient, QueryFilters } from '@tanstack/react-query';

/**
 * rereadQueries reads queries again after the service has said that their answers changed. A first read that is under way may have
 * been answered before the change, and an invalidation alone does not repeat it: such a query is read once more when it has ended.
 */
export async function rereadQueries(cache: QueryClient, filters: QueryFilters): Promise<void> {
  const first = cache
    .getQueryCache()
    .findAll(filters)
    .filter((query) => query.state.fetchStatus === 'fetching' && query.state.data === undefined);
  await cache.invalidateQueries(filters);
  if (first.length > 0) {
    await cache.invalidateQueries({ predicate: (query) => first.includes(query) });
  }
}

/**
 * beginChange stops queries that are being read, since they would show again what was before a change that the page shows already.
 * The returned function is called when the service has the change. If queries were read meanwhile, they are read again at once;
 * all others are when they are shown.
 */
export function beginChange(cache: QueryClient, filters: QueryFilters): () => Promise<void> {
  const began = Date.now();
  const wasReading = cache.isFetching(filters) > 0;
  void cache.cancelQueries(filters);

  return () => {
    const isReading = cache.isFetching(filters) > 0;
    const wasRead = cache
      .getQueryCache()
      .findAll(filters)
      .some((query) => query.state.dataUpdatedAt >= began);

    return wasReading || isReading || wasRead
      ? rereadQueries(cache, filters)
      : cache.invalidateQueries({ ...filters, refetchType: 'none' });
  };
}
