import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { messageOf } from '../data/ErrorFault';
import { useToast } from '../ui/Toast';

const keyOf = (teamId: string | undefined) => ['favourites', teamId ?? 'personal'];
const mostPages = 10;

/** readFavourites returns the ids of the newest favourites; runs do not carry that mark. */
async function readFavourites(teamId: string | undefined): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const query = { favorited: true, team_id: teamId, limit: 100, cursor };
    const list = dataOf(await api.GET('/library', { params: { query } }));
    ids.push(...list.data.map((item) => item.id));
    cursor = list.next_cursor ?? undefined;
    if (!cursor) {
      break;
    }
  }

  return ids;
}

/** favouritesQuery is the question for the ids of the account's newest favourites. */
export function favouritesQuery(teamId: string | undefined) {
  return queryOptions({ queryKey: keyOf(teamId), queryFn: () => readFavourites(teamId) });
}

/** useFavourites returns the account's favourites, and a function that adds or removes one at once. */
export function useFavourites(): [ReadonlySet<string>, (id: string, on: boolean) => void] {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const favourites = useQuery({ ...favouritesQuery(teamId), select: toSet });

  const change = useCallback(
    async (id: string, on: boolean) => {
      const apply = (add: boolean) =>
        cache.setQueryData<string[]>(keyOf(teamId), (ids = []) =>
          add ? [...ids.filter((one) => one !== id), id] : ids.filter((one) => one !== id),
        );
      apply(on);
      const params = { path: { library_id: id }, query: { team_id: teamId } };
      try {
        await (on
          ? api.PUT('/library/{library_id}/favorite', { params })
          : api.DELETE('/library/{library_id}/favorite', { params }));
        void cache.invalidateQueries({ queryKey: ['library'] });
      } catch (error) {
        apply(!on);
        toast({ text: messageOf(error) });
      }
    },
    [cache, teamId, toast],
  );

  const set = useCallback((id: string, on: boolean) => void change(id, on), [change]);

  return [favourites.data ?? none, set];
}

const none: ReadonlySet<string> = new Set();

const toSet = (ids: string[]): ReadonlySet<string> => new Set(ids);
