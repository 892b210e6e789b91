import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import type { GridHandle } from './Grid';
import { useDetail } from './Inspector';
import type { Shelf } from './shelf';

const addressDelay = 120;

/** useActiveItem knows which item the keys act on, and keeps it in the address while its details are open. */
export function useActiveItem(
  shelf: Shelf | undefined,
  openId: string | undefined,
  isResult: boolean,
  grid: RefObject<GridHandle | null>,
) {
  const [, navigate] = useLocation();
  const [active, setActive] = useState(-1);
  const [wantedId, setWantedId] = useState<string>();
  const timer = useRef(0);
  const activeId = useRef<string>(undefined);
  const shownShelf = useRef(shelf);

  const open = useCallback(
    (id: string | undefined, replace: boolean) => {
      clearTimeout(timer.current);
      setWantedId(id);
      const path = id === undefined ? '/library' : `/library/${encodeURIComponent(id)}`;
      navigate(`${path}${location.search}`, { replace });
    },
    [navigate],
  );

  const move = useCallback(
    (index: number) => {
      const id = shelf?.itemAt(index)?.id;
      activeId.current = id;
      setActive(index);
      if (openId !== undefined && id !== undefined) {
        // The details change at once. The address follows when the keys rest, since browsers limit its changes.
        setWantedId(id);
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => open(id, true), addressDelay);
      }
    },
    [shelf, openId, open],
  );

  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => setWantedId(openId), [openId]);

  // A newer list may have the active item at another place.
  useEffect(() => {
    if (shelf && shownShelf.current !== shelf) {
      shownShelf.current = shelf;
      setActive(activeId.current === undefined ? -1 : shelf.find(activeId.current));
    }
  }, [shelf]);

  // An address that was followed from elsewhere opens the list at its item.
  const elsewhere =
    openId !== undefined && shelf !== undefined && activeId.current !== openId && shelf.find(openId) < 0;
  const detail = useDetail(openId ?? '', elsewhere && isResult);
  const created = detail.data?.created ?? '';
  useEffect(() => {
    if (!shelf || openId === undefined || activeId.current === openId) {
      return;
    }
    const known = shelf.find(openId);
    if (known < 0 && isResult && (!created || !shelf.complete)) {
      return; // the places of the list are not read yet
    }
    let current = true;
    void shelf
      .locate(openId, created)
      .catch(() => -1)
      .then((index) => {
        if (current) {
          activeId.current = openId;
          setActive(index);
          if (index >= 0) {
            grid.current?.show(index, known < 0);
          }
        }
      });
    return () => {
      current = false;
    };
  }, [shelf, openId, created, isResult, grid]);

  return { active, shownId: openId === undefined ? undefined : (wantedId ?? openId), move, open };
}
