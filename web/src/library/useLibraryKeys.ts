import { useLayoutEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { inputLink, runAgainLink } from '../data/links';
import { usePreferences } from '../data/preferences';
import { useKeys } from '../ui/keys';
import type { Item } from './items';
import type { ItemActions } from './useItemActions';

type Options = {
  /** What the keys act on: the selection, or the active item. */
  items: Item[];
  actions: ItemActions;
  enabled: boolean;
  onSelect: (range: boolean) => void;
  onPin: (items: Item[]) => void;
  onEscape: () => void;
};

/** isCovered reports whether a dialog or a menu lies over the page. */
function isCovered(): boolean {
  return document.querySelector('dialog[open], :popover-open') !== null;
}

/** useLibraryKeys binds the keys of results. Arrows, Space and Enter belong to the grid. */
export function useLibraryKeys({ items, actions, enabled, onSelect, onPin, onEscape }: Options): void {
  const { teamId } = useAccount();
  const { letterKeys } = usePreferences();
  const [, navigate] = useLocation();

  const act = (run: (items: Item[]) => void) => () => {
    if (items.length > 0 && !isCovered()) {
      run(items);
    }
  };
  useKeys(
    {
      '/': () => document.querySelector<HTMLInputElement>('[data-filter]')?.focus(),
      f: act((chosen) => void actions.setFavorite(chosen, !chosen.every((item) => item.favorited))),
      x: () => !isCovered() && onSelect(false),
      'Shift+x': () => !isCovered() && onSelect(true),
      i: act(([item]) => item && navigate(inputLink(item.kind, item.id, teamId))),
      r: act(([item]) => {
        if (item?.tool_id && item.request_id) {
          navigate(runAgainLink(item.tool_id, item.request_id, teamId));
        }
      }),
      d: act((chosen) => void actions.download(chosen)),
      p: act(onPin),
      Delete: act(actions.remove),
    },
    { letters: letterKeys, enabled },
  );

  // Escape is left to whatever lies over the page, which closes by itself.
  const latest = useRef(onEscape);
  latest.current = onEscape;
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !isCovered()) {
        latest.current();
      }
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}
