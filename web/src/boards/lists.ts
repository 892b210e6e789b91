import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { messageOf } from '../data/ErrorFault';
import { text } from '../text/boards';
import { useToast } from '../ui/Toast';
import type { BoardSummary } from './model';

/** boardsKey is the place of an account's boards in the cache. */
export const boardsKey = (teamId: string | undefined) => ['boards', teamId ?? 'personal'];

/** useBoards reads the boards of the account, or those that were deleted, a page at a time. */
export function useBoards(teamId: string | undefined, deleted: boolean) {
  return useInfiniteQuery({
    queryKey: [...boardsKey(teamId), deleted],
    staleTime: 5000,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: { next_cursor: string | null }) => page.next_cursor ?? undefined,
    queryFn: async ({ pageParam }) => {
      const query = { team_id: teamId, deleted: deleted || undefined, limit: 50, cursor: pageParam };
      return dataOf(await api.GET('/boards', { params: { query } }));
    },
  });
}

/** useRestoreBoard returns a function that brings a deleted board back. */
export function useRestoreBoard() {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();

  return useCallback(
    async ({ id, name }: Pick<BoardSummary, 'id' | 'name'>) => {
      try {
        await api.POST('/boards/{board_id}/restore', {
          params: { path: { board_id: id }, query: { team_id: teamId } },
        });
        toast({ text: text.boardRestored(name) });
      } catch (error) {
        toast({ text: messageOf(error), seconds: 12 });
      }
      await cache.invalidateQueries({ queryKey: boardsKey(teamId) });
    },
    [teamId, cache, toast],
  );
}

/** useDeleteBoard returns a function that deletes a board and offers to bring it back; it reports whether the board is deleted. */
export function useDeleteBoard() {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const restore = useRestoreBoard();

  return useCallback(
    async (board: Pick<BoardSummary, 'id' | 'name'>) => {
      try {
        await api.DELETE('/boards/{board_id}', {
          params: { path: { board_id: board.id }, query: { team_id: teamId } },
        });
      } catch (error) {
        toast({ text: messageOf(error), seconds: 12 });
        return false;
      }
      toast({
        text: text.boardDeleted(board.name),
        action: { label: text.undo, key: 'Z', run: () => void restore(board) },
        seconds: 10,
      });
      void cache.invalidateQueries({ queryKey: boardsKey(teamId) });
      return true;
    },
    [teamId, cache, toast, restore],
  );
}
