import type { QueryClient } from '@tanstack/react-query';
import { kitsQuery, toolQuery, toolsQuery } from '../data/catalog';
import { runsQuery } from '../data/runs';
import { favouritesQuery } from './favourites';

/**
 * readAhead asks for all that Create shows first, if that is the page of the address. The page itself asks once it is
 * known who is signed in, which is later by the time of one answer.
 */
export function readAhead(cache: QueryClient, path: string, search: string): void {
  const [, toolId] = path.match(/^\/create\/([^/]+)$/) ?? [];
  if (path !== '/' && path !== '/welcome' && !toolId) {
    return;
  }
  const teamId = new URLSearchParams(search).get('team') ?? undefined;

  void cache.prefetchInfiniteQuery(runsQuery(teamId));
  void cache.prefetchQuery(toolsQuery(teamId));
  void cache.prefetchQuery(kitsQuery(teamId));
  void cache.prefetchQuery(favouritesQuery(teamId));
  if (toolId) {
    void cache.prefetchQuery(toolQuery(toolId, teamId));
  }
}
