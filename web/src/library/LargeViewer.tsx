import { Suspense, useMemo, useSyncExternalStore } from 'react';
import { text } from '../text/library';
import { IconButton } from '../ui/Button';
import { part } from '../ui/part';
import type { Item } from './items';
import type { Shelf } from './shelf';
import type { ItemActions } from './useItemActions';

const Viewer = part(() => import('../data/Viewer'));

type Props = {
  shelf: Shelf;
  active: number;
  actions: ItemActions;
  onMove: (index: number) => void;
  onClose: () => void;
};

/** LargeViewer fills the window with the active item; the arrow keys go through the whole list. */
export function LargeViewer({ shelf, active, actions, onMove, onClose }: Props) {
  const version = useSyncExternalStore(shelf.subscribe, shelf.version);

  // The viewer gets the neighbours of the item at their places in a list that is otherwise empty.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the neighbours change with what is read.
  const items = useMemo(() => {
    const near: Item[] = [];
    near.length = shelf.total;
    for (let index = Math.max(0, active - 2); index <= Math.min(shelf.total - 1, active + 2); index++) {
      const item = shelf.itemAt(index);
      if (item) {
        near[index] = item;
      }
    }
    return near;
  }, [shelf, active, version]);
  const shown = items[active];

  return (
    <Suspense>
      <Viewer
        items={items}
        at={active}
        onMove={onMove}
        onClose={onClose}
        labelOf={() => shown?.label ?? text.noPrompt}
        actions={() =>
          shown && (
            <>
              {shown.kind === 'LIBRARY_REF' && (
                <IconButton
                  icon="heart"
                  iconFull={shown.favorited}
                  on={shown.favorited}
                  label={shown.favorited ? text.unfavorite : text.favorite}
                  onClick={() => void actions.setFavorite([shown], !shown.favorited)}
                />
              )}
              <IconButton icon="download" label={text.download} onClick={() => void actions.download([shown])} />
            </>
          )
        }
      />
    </Suspense>
  );
}
