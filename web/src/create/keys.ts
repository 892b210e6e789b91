import type { KeyboardEvent } from 'react';
import { nameOf as nameOfKey } from '../ui/keys';
import type { CreatePage } from './context';
import type { Result } from './results';

/** Box is the place of a result on the screen. */
export type Box = { id: string; left: number; top: number; width: number; height: number };

/** neighbourOf returns the id of the result next to one: along the order, or in the row above or below. */
export function neighbourOf(boxes: readonly Box[], id: string, key: string): string | undefined {
  const at = boxes.findIndex((box) => box.id === id);
  const box = boxes[at];
  if (!box) {
    return boxes[0]?.id;
  }
  switch (key) {
    case 'ArrowRight':
      return boxes[at + 1]?.id;
    case 'ArrowLeft':
      return boxes[at - 1]?.id;
    case 'Home':
      return boxes[0]?.id;
    case 'End':
      return boxes.at(-1)?.id;
    case 'ArrowDown':
      return nearest(boxes.slice(at + 1), box, (other) => other.top > box.top + box.height / 2);
    case 'ArrowUp':
      return nearest(boxes.slice(0, at).reverse(), box, (other) => other.top < box.top - box.height / 2);
    default:
      return undefined;
  }
}

/** nearest returns the closest box of the first row that lies in the direction. */
function nearest(boxes: readonly Box[], from: Box, lies: (box: Box) => boolean): string | undefined {
  const first = boxes.find(lies);
  if (!first) {
    return undefined;
  }
  const row = boxes.filter((box) => Math.abs(box.top - first.top) < first.height / 2);
  const distance = (box: Box) => Math.abs(box.left - from.left);

  return row.reduce((best, box) => (distance(box) < distance(best) ? box : best), first).id;
}

/** boxesIn returns the places of the results inside of an element, in their order. */
function boxesIn(element: Element): Box[] {
  return [...element.querySelectorAll<HTMLElement>('[data-result]')].map((tile) => {
    const { left, top, width, height } = tile.getBoundingClientRect();
    return { id: tile.dataset.result ?? '', left, top, width, height };
  });
}

/** focusResult moves the focus to a result in the feed. */
export function focusResult(id: string): void {
  document.querySelector<HTMLElement>(`[data-result="${CSS.escape(id)}"] [data-open]`)?.focus();
}

/** handleResultKey does what a key means for the result that has the focus. */
export function handleResultKey(
  event: KeyboardEvent<HTMLElement>,
  result: Result,
  page: CreatePage,
  letters: boolean,
  onFocus: (id: string) => void,
): void {
  const key = nameOfKey(event.nativeEvent);
  const next = neighbourOf(boxesIn(event.currentTarget), result.id, key);
  const named: Record<string, () => void> = {
    Space: () => page.open({ kind: 'viewer', id: result.id }),
    Enter: () => page.open({ kind: 'details', id: result.id }),
    Delete: () => page.remove(result),
  };
  const single: Record<string, () => void> = {
    f: () => page.setFavourite(result.id, !page.favourites.has(result.id)),
    i: () => page.takeAsInput(result),
    r: () => page.runAgain(result.run),
    n: () => page.newSeed(result.run),
    c: () => page.mark(result.id),
    d: () => page.download(result),
    p: () => page.open({ kind: 'pin', result }),
  };

  if (next !== undefined) {
    event.preventDefault();
    onFocus(next);
    return;
  }
  const act = named[key] ?? (letters ? single[key] : undefined);
  if (act) {
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}
