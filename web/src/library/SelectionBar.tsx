import { useSyncExternalStore } from 'react';
import { text } from '../text/library';
import { Button, IconButton } from '../ui/Button';
import { Progress } from '../ui/Progress';
import type { Item } from './items';
import styles from './SelectionBar.module.css';
import type { Selection } from './selection';
import type { ItemActions } from './useItemActions';

type Props = { selection: Selection; actions: ItemActions; onPin: (items: Item[]) => void };

/** SelectionBar stands at the foot while items are selected, and acts on all of them. */
export function SelectionBar({ selection, actions, onPin }: Props) {
  const items = useSyncExternalStore(selection.subscribe, selection.list);
  const { packing } = actions;

  if (packing) {
    return (
      <div className={styles.bar} role="toolbar" aria-label={text.packing(packing.done, packing.count)}>
        <b className="num">{text.packing(packing.done, packing.count)}</b>
        <span className={styles.progress}>
          <Progress label={text.download} value={packing.done / packing.count} tone="light" />
        </span>
        <IconButton icon="close" label={text.stopPacking} className={styles.button} onClick={actions.stopPacking} />
      </div>
    );
  }
  if (items.length === 0) {
    return null;
  }

  const results = items.filter((item) => item.kind === 'LIBRARY_REF');
  const allFavorites = results.length > 0 && results.every((item) => item.favorited);
  const button = { className: styles.button };

  return (
    <div className={styles.bar} role="toolbar" aria-label={text.selected(items.length)}>
      <b className="num" role="status">
        {text.selected(items.length)}
      </b>
      {results.length > 0 && (
        <Button
          {...button}
          icon="heart"
          iconFull={allFavorites}
          aria-label={text.favorite}
          aria-pressed={allFavorites}
          onClick={() => void actions.setFavorite(results, !allFavorites)}
        >
          <span className="hide-small">{text.favorite}</span>
        </Button>
      )}
      <Button {...button} icon="download" aria-label={text.download} onClick={() => void actions.download(items)}>
        <span className="hide-small">{text.download}</span>
      </Button>
      <Button {...button} icon="board" aria-label={text.pin} onClick={() => onPin(items)}>
        <span className="hide-small">{text.pin}</span>
      </Button>
      <IconButton {...button} icon="trash" label={text.delete} onClick={() => actions.remove(items)} />
      <IconButton {...button} icon="close" label={text.clear} onClick={() => selection.clear()} />
    </div>
  );
}
