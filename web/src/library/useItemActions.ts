import { type Query, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { api } from '../api/client';
import { useAccount } from '../data/account';
import { messageOf } from '../data/ErrorFault';
import { beginChange } from '../data/reread';
import { text } from '../text/library';
import { useToast } from '../ui/Toast';
import { downloadMany, downloadOne, FileError, type Progress } from './download';
import type { Item } from './items';
import type { Selection } from './selection';
import type { Shelf } from './shelf';

const undoSeconds = 7;
const atOnce = 4;

/** forEach calls a function for all items, some at a time, and returns those that failed with the last error. */
async function forEach(
  items: Item[],
  act: (item: Item) => Promise<unknown>,
): Promise<{ failed: Item[]; error: unknown }> {
  const waiting = [...items];
  const failed: Item[] = [];
  let error: unknown;
  const work = async () => {
    for (let item = waiting.shift(); item; item = waiting.shift()) {
      try {
        await act(item);
      } catch (reason) {
        failed.push(item);
        error = reason;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));

  return { failed, error };
}

// The queries for lists of results.
const lists = {
  predicate: ({ queryKey }: Pick<Query, 'queryKey'>) =>
    queryKey[0] === 'library-shelf' || queryKey[0] === 'library-first',
};

const idsOf = (items: Item[]) => new Set(items.map((item) => item.id));

export type ItemActions = ReturnType<typeof useItemActions>;

/** useItemActions does what can be done with one item or many: favourites, downloads, and deletes that can be undone. */
export function useItemActions(shelf: Shelf | undefined, selection: Selection) {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const [packing, setPacking] = useState<Progress>();
  const stop = useRef<AbortController>(undefined);

  useEffect(() => () => stop.current?.abort(), []);

  return useMemo(() => {
    // What the page shows as done is sent even if the page is left at once.
    const requestFor = (item: Item) => ({
      params: { path: { library_id: item.id }, query: { team_id: teamId } },
      keepalive: true,
    });

    // The list on the page, and those with other filters that were read before and may be shown again.
    const shelves = () => {
      const known = cache.getQueriesData<Shelf>({ queryKey: ['library-shelf'] }).map(([, one]) => one);
      return [...new Set([shelf, ...known])].filter((one) => one !== undefined);
    };

    const setFavorite = async (items: Item[], favorited: boolean) => {
      const results = items.filter((item) => item.kind === 'LIBRARY_REF' && item.favorited !== favorited);
      const show = (changed: Item[], value: boolean) => {
        for (const item of changed) {
          for (const one of shelves()) {
            one.change(item.id, { favorited: value });
          }
          cache.setQueryData<{ favorited: boolean }>(
            ['library', 'item', item.id],
            (known) => known && { ...known, favorited: value },
          );
        }
        selection.update(changed.map((item) => ({ ...item, favorited: value })));
      };

      const endChange = beginChange(cache, lists);
      show(results, favorited);
      const { failed, error } = await forEach(results, (item) =>
        favorited
          ? api.PUT('/library/{library_id}/favorite', requestFor(item))
          : api.DELETE('/library/{library_id}/favorite', requestFor(item)),
      );
      void endChange();
      if (failed.length > 0) {
        show(failed, !favorited);
        toast({ text: text.favoriteFailed(messageOf(error)) });
      }
    };

    /** Results are deleted at once and restored by the service. Uploads cannot be restored, so their deletion waits until the undo is over. */
    const remove = (items: Item[]) => {
      const results = items.filter((item) => item.kind === 'LIBRARY_REF');
      const uploads = items.filter((item) => item.kind === 'UPLOAD_REF');
      const endChange = beginChange(cache, lists);
      const undos = shelves().map((one) => one.remove(idsOf(items)));
      const putBack = (back: Set<string>) => {
        for (const undo of undos) {
          undo(back);
        }
      };
      selection.remove(idsOf(items));

      const tellFailed = ({ failed, error }: { failed: Item[]; error: unknown }) => {
        void endChange();
        if (failed.length > 0) {
          putBack(idsOf(failed));
          toast({ text: text.deleteFailed(failed.length, messageOf(error)) });
        }
        return failed;
      };
      const deleting = forEach(results, (item) => api.DELETE('/library/{library_id}', requestFor(item))).then(
        tellFailed,
      );
      const deleteUploads = () =>
        forEach(uploads, (item) =>
          api.DELETE('/uploads/{upload_id}', {
            params: { path: { upload_id: item.id }, query: { team_id: teamId } },
            keepalive: true,
          }),
        ).then(tellFailed);

      const undo = async () => {
        const kept = idsOf(await deleting);
        const gone = results.filter((item) => !kept.has(item.id));
        const { failed, error } = await forEach(gone, (item) =>
          api.POST('/library/{library_id}/restore', requestFor(item)),
        );
        const lost = idsOf(failed);
        putBack(idsOf([...gone, ...uploads].filter((item) => !lost.has(item.id))));
        if (gone.length > 0) {
          // The list may have been read anew since, without these results.
          void cache.invalidateQueries(lists);
        }
        toast({
          text: failed.length > 0 ? text.restoreFailed(messageOf(error)) : text.restored(gone.length + uploads.length),
        });
      };

      toast({
        text: text.deleted(items.length),
        seconds: undoSeconds,
        action: { label: text.undo, key: 'Z', run: () => void undo() },
        onGone: () => {
          if (uploads.length > 0) {
            void deleteUploads();
          }
        },
      });
    };

    const download = async (items: Item[]) => {
      stop.current?.abort();
      const control = new AbortController();
      stop.current = control;
      const [first] = items;
      try {
        if (items.length === 1 && first) {
          await downloadOne(first, control.signal);
          return;
        }
        setPacking({ done: 0, count: items.length });
        await downloadMany(items, setPacking, control.signal);
        toast({ text: text.downloaded(items.length) });
      } catch (error) {
        const stopped = control.signal.aborted || (error instanceof DOMException && error.name === 'AbortError');
        if (!stopped) {
          const reason = error instanceof FileError ? text.fileFailed(error.fileName) : messageOf(error);
          toast({ text: text.downloadFailed(reason) });
        }
      } finally {
        setPacking(undefined);
      }
    };

    return { setFavorite, remove, download, packing, stopPacking: () => stop.current?.abort() };
  }, [shelf, selection, teamId, cache, toast, packing]);
}
