import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import {
  coversRows,
  heightOf,
  indexesOf,
  type Layout,
  moveRows,
  type Rows,
  rowsBetween,
  scrollTopFor,
  topOfRow,
} from './geometry';
import { readPosition, savePosition } from './positions';
import type { ScrubberHandle } from './Scrubber';
import type { Shelf } from './shelf';
import { partOf } from './timeline';

// Above this speed (pixels a millisecond) nobody can see pictures: tiles show a colour, and nothing is read.
const flyingSpeed = 9;
const settleMs = 110;
const saveMs = 250;

type Options = {
  scroller: RefObject<HTMLElement | null>;
  scrubber: RefObject<ScrubberHandle | null>;
  shelf: Shelf;
  layout: Layout | undefined;
  /** The name under which the position is remembered. */
  list: string;
  /** The tile that stays where it is when the layout changes, if it is in view. */
  active: number;
};

type Anchor = { index: number; id: string | undefined; offset: number };

/** useGridWindow knows which rows are in view. It draws only when a row enters or leaves; the browser does the scrolling. */
export function useGridWindow({ scroller, scrubber, shelf, layout, list, active }: Options) {
  const [rows, setRows] = useState<Rows>({ first: 0, last: -1 });
  const [flying, setFlying] = useState(false);
  const drawn = useRef(rows);
  const motion = useRef({ top: 0, time: 0, down: true, flying: false, settle: 0, save: 0, frame: 0 });
  const anchor = useRef<Anchor>({ index: 0, id: undefined, offset: 0 });
  const shown = useRef({ list: '', shelf, layout });
  const total = shelf.total;

  const update = useCallback(
    (scrolls = false) => {
      const element = scroller.current;
      if (!element || !layout) {
        return;
      }
      const top = element.scrollTop;
      const now = performance.now();
      const state = motion.current;
      const speed = Math.abs(top - state.top) / Math.max(8, now - state.time);
      state.flying = speed > flyingSpeed;
      if (top !== state.top) {
        state.down = top > state.top;
      }
      state.top = top;
      state.time = now;

      const between = (behind: number, ahead: number) =>
        state.down
          ? rowsBetween(layout, total, top - behind, top + layout.height + ahead)
          : rowsBetween(layout, total, top - ahead, top + layout.height + behind);
      const view = between(0, 0);
      const ahead = state.flying ? 0 : layout.height;
      const needed = between(0, ahead);
      const allowed = state.flying ? needed : between(layout.height * 0.6, ahead + layout.height);
      const appears = !coversRows(drawn.current, view);
      const next = moveRows(drawn.current, needed, allowed);
      drawn.current = next;
      const show = () => {
        setFlying(state.flying);
        setRows(next);
      };
      // What is in view appears with the frame that scrolls to it; what is further away has time.
      if (scrolls && appears) {
        flushSync(show);
      } else {
        show();
      }

      const first = view.first * layout.columns;
      anchor.current = { index: first, id: shelf.itemAt(first)?.id, offset: top - topOfRow(layout, view.first) };
      scrubber.current?.move(partOf(top, heightOf(layout, total), layout.height), first);

      clearTimeout(state.settle);
      if (state.flying) {
        state.settle = window.setTimeout(() => update(), settleMs);
      } else {
        const near = between(layout.height, layout.height * 2);
        const wanted = indexesOf(layout, total, near);
        shelf.want(wanted.from, wanted.to);
      }

      clearTimeout(state.save);
      state.save = window.setTimeout(() => savePosition(list, anchor.current), saveMs);
    },
    [scroller, scrubber, shelf, layout, total, list],
  );

  useEffect(() => {
    const element = scroller.current;
    const state = motion.current;
    const listen = () => {
      state.frame ||= requestAnimationFrame(() => {
        state.frame = 0;
        update(true);
      });
    };
    element?.addEventListener('scroll', listen, { passive: true });
    return () => {
      element?.removeEventListener('scroll', listen);
      cancelAnimationFrame(state.frame);
      clearTimeout(state.settle);
      state.frame = 0;
    };
  }, [scroller, update]);

  // Another list begins where it was left; another layout or a newer list keeps what is in view where it is.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !layout) {
      return;
    }
    const before = shown.current;
    const known = anchor.current;
    if (before.list !== list) {
      const position = readPosition(list);
      const row = Math.floor(position.index / layout.columns);
      element.scrollTop = row === 0 && position.offset < 0 ? 0 : topOfRow(layout, row) + position.offset;
    } else if (before.shelf !== shelf && known.id && element.scrollTop > layout.step) {
      const index = shelf.find(known.id);
      if (index >= 0) {
        element.scrollTop = topOfRow(layout, Math.floor(index / layout.columns)) + known.offset;
      }
    } else if (before.layout && before.layout.step !== layout.step) {
      const old = before.layout;
      const above = topOfRow(old, Math.floor(active / old.columns)) - element.scrollTop;
      const visible = active >= 0 && above > -old.side && above < old.height;
      const index = visible ? active : known.index;
      const place = visible ? Math.min(above, layout.height - layout.step) : -known.offset;
      element.scrollTop = Math.max(0, topOfRow(layout, Math.floor(index / layout.columns)) - place);
    }
    shown.current = { list, shelf, layout };
    motion.current.top = element.scrollTop;
    update();
  }, [scroller, shelf, layout, list, active, update]);

  const scrollToPart = useCallback(
    (part: number) => {
      if (scroller.current && layout) {
        scroller.current.scrollTop = part * (heightOf(layout, total) - layout.height);
      }
    },
    [scroller, layout, total],
  );

  const scrollToIndex = (index: number, center = false) => {
    if (scroller.current && layout) {
      scroller.current.scrollTop = scrollTopFor(layout, index, scroller.current.scrollTop, center);
      update();
    }
  };

  return { rows, flying, scrollToPart, scrollToIndex };
}
