import { memo, useSyncExternalStore } from 'react';
import { text } from '../text/library';
import { classes } from '../ui/classes';
import { formatSeconds } from '../ui/format';
import { Icon } from '../ui/Icon';
import { type Item, smallPicture } from './items';
import type { Selection } from './selection';
import styles from './Tile.module.css';
import { TilePicture } from './TilePicture';
import { Wave } from './Wave';

type Props = {
  item: Item | undefined;
  index: number;
  column: number;
  /** The id of the element, which the grid names as the active one. */
  id: string;
  active: boolean;
  /** Shows a colour only, while the list flies by. */
  quick: boolean;
  draggable: boolean;
  selection: Selection;
};

/** nameOf writes what a tile shows, for screen readers. */
export function nameOf(item: Item): string {
  const length = item.duration_seconds === null ? undefined : formatSeconds(item.duration_seconds);
  const more: string[] = [];
  if (item.type !== 'IMG') {
    more.push(text.tileMedium(text.mediums[item.type], length));
  }
  if (item.favorited) {
    more.push(text.tileFavorite);
  }

  return text.tile(item.label ?? text.noPrompt, more);
}

/** Tile is one result or upload in the grid. Clicks and drags are handled by the grid, for all tiles at once. */
export const Tile = memo(function Tile({ item, index, column, id, active, quick, draggable, selection }: Props) {
  const selected = useSyncExternalStore(selection.subscribe, () => item !== undefined && selection.has(item.id));

  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names the active tile.
    <div
      role="gridcell"
      id={id}
      data-index={index}
      aria-colindex={column + 1}
      aria-selected={selected}
      aria-label={item ? nameOf(item) : text.loadingTile}
      aria-busy={item ? undefined : true}
      className={classes(styles.tile, selected && styles.selected, active && styles.active)}
      draggable={draggable && item !== undefined}
    >
      {item && <Content item={item} quick={quick} />}
      {item && (
        <span data-tick="" className={styles.tick}>
          <Icon name="check" small />
        </span>
      )}
    </div>
  );
});

function Content({ item, quick }: { item: Item; quick: boolean }) {
  const source = smallPicture(item);

  return (
    <>
      {source ? (
        <TilePicture src={source} blurhash={item.blurhash} quick={quick} />
      ) : (
        <div className={classes(styles.picture, styles.drawn)}>
          {item.type === 'AUDIO' ? <Wave id={item.id} /> : <Icon name={item.type === 'ASSET_3D' ? 'box' : 'image'} />}
        </div>
      )}
      {item.duration_seconds !== null && (
        <span className={styles.length}>
          <Icon name="play" small full />
          {formatSeconds(item.duration_seconds)}
        </span>
      )}
      {item.favorited && (
        <span className={styles.favorite}>
          <Icon name="heart" small full />
        </span>
      )}
    </>
  );
}
