import { text } from '../text/library';
import { useToast } from '../ui/Toast';
import { rangeBetween, type Selection } from './selection';
import type { Shelf } from './shelf';

const longestRange = 2000;

/** useSelect returns a function that selects an item, or all items from the one that was selected last. */
export function useSelect(shelf: Shelf | undefined, selection: Selection, onMove: (index: number) => void) {
  const toast = useToast();

  return async (index: number, range: boolean): Promise<void> => {
    const item = shelf?.itemAt(index);
    if (!shelf || !item) {
      return;
    }
    onMove(index);
    if (!range || selection.anchor < 0) {
      selection.toggle(item, index);
      return;
    }

    const { from, to } = rangeBetween(selection.anchor, index);
    if (to - from > longestRange) {
      toast({ text: text.rangeTooLong(longestRange) });
    }
    selection.add(await shelf.read(from, Math.min(to, from + longestRange)));
  };
}
