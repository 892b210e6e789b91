import { memo } from 'react';
import { writeDragged } from '../data/dragged';
import { mediumIcons } from '../form/MediaThumb';
import { text } from '../text/create';
import { IconButton } from '../ui/Button';
import { classes } from '../ui/classes';
import { formatSeconds } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Picture } from '../ui/Picture';
import { Player } from '../ui/Player';
import { useCreatePage } from './context';
import styles from './Feed.module.css';
import type { Result } from './results';

type Props = {
  result: Result;
  /** Whether this is a result of the newest run, whose pictures are loaded before all others. */
  first: boolean;
  chosen: boolean;
  focusable: boolean;
  onOpen: (result: Result) => void;
};

/** ResultTile is one result in the feed: its picture, and what is done with it most. */
export const ResultTile = memo(function ResultTile({ result, first, chosen, focusable, onOpen }: Props) {
  const page = useCreatePage();
  const favourite = page.favourites.has(result.id);
  const mark = page.marked?.indexOf(result.id) ?? -1;
  const tabIndex = focusable ? 0 : -1;

  return (
    <figure className={classes(styles.tile, chosen && styles.chosen)} data-result={result.id}>
      <button
        type="button"
        className={styles.open}
        data-open
        tabIndex={tabIndex}
        aria-label={text.withLength(result.label, result.duration_seconds)}
        aria-pressed={page.marked ? mark >= 0 : undefined}
        aria-current={chosen || undefined}
        draggable
        onDragStart={(event) =>
          writeDragged(event.dataTransfer, [
            { kind: 'LIBRARY_REF', id: result.id, type: result.type, thumb: result.thumb_url },
          ])
        }
        onClick={() => onOpen(result)}
      >
        <ShotPicture result={result} first={first} />
      </button>
      {result.type === 'AUDIO' && result.url && (
        <div className={styles.player}>
          <Player kind="AUDIO" src={result.url} label={result.label} />
        </div>
      )}
      {mark >= 0 && <span className={styles.mark}>{mark + 1}</span>}
      <div className={classes(styles.over, favourite && styles.kept)}>
        <IconButton
          kind="pill"
          icon="heart"
          iconFull={favourite}
          on={favourite}
          tabIndex={tabIndex}
          aria-pressed={favourite}
          label={text.favourite}
          onClick={() => page.setFavourite(result.id, !favourite)}
        />
        <IconButton
          kind="pill"
          icon="wand"
          tabIndex={tabIndex}
          label={text.useAsInput}
          onClick={() => page.takeAsInput(result)}
        />
        <IconButton
          kind="pill"
          icon="download"
          tabIndex={tabIndex}
          label={text.download}
          onClick={() => page.download(result)}
        />
      </div>
    </figure>
  );
});

function ShotPicture({ result, first }: Pick<Props, 'result' | 'first'>) {
  const source = result.thumb_url ?? result.preview_url ?? (result.type === 'IMG' ? result.url : null);

  return (
    <>
      {source ? (
        <Picture
          src={source}
          alt=""
          blurhash={result.blurhash}
          first={first}
          className={styles.fill}
          draggable={false}
        />
      ) : (
        <span className={styles.kind}>
          <Icon name={mediumIcons[result.type]} />
        </span>
      )}
      {result.duration_seconds !== null && (
        <span className={styles.length}>
          {result.type === 'VID' && <Icon name="play" small />}
          {formatSeconds(result.duration_seconds)}
        </span>
      )}
    </>
  );
}
