import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import type { Schemas } from '../api/client';
import { text } from '../text/viewer';
import { IconButton } from '../ui/Button';
import { classes } from '../ui/classes';
import { Dialog } from '../ui/Dialog';
import { Icon } from '../ui/Icon';
import { useKeys } from '../ui/keys';
import { Picture } from '../ui/Picture';
import { Player } from '../ui/Player';
import styles from './Viewer.module.css';

/** ViewerItem is what the viewer needs of a result or an upload. */
export type ViewerItem = {
  id: string;
  type: Schemas['Medium'];
  url: string | null;
  thumb_url: string | null;
  preview_url: string | null;
  blurhash: string | null;
  width: number | null;
  height: number | null;
};

type Props<T extends ViewerItem> = {
  items: T[];
  /** The place of the item that is shown. */
  at: number;
  onMove: (at: number) => void;
  onClose: () => void;
  /** What the item is, such as its prompt; it is the text of the picture for screen readers. */
  labelOf: (item: T) => string;
  /** Buttons for the item at the right of the head. */
  actions?: (item: T) => ReactNode;
  /** How many items there are in all, where the list is not read to its end. */
  total?: number;
};

/** Viewer fills the window with one picture, video, sound or text; the arrow keys move to its neighbours. */
export default function Viewer<T extends ViewerItem>({
  items,
  at,
  onMove,
  onClose,
  labelOf,
  actions,
  total,
}: Props<T>) {
  const [actual, setActual] = useState(false);
  const item = items[at];

  const move = (step: number) => {
    const next = at + step;
    if (next >= 0 && next < items.length) {
      setActual(false);
      onMove(next);
    }
  };
  useKeys({
    ArrowLeft: () => move(-1),
    ArrowRight: () => move(1),
  });

  useEffect(() => {
    if (!item) {
      onClose();
    }
  }, [item, onClose]);

  if (!item) {
    return null;
  }
  const label = labelOf(item);
  return (
    <Dialog open onClose={onClose} title={text.title(label)} kind="full" bare>
      <div className={styles.viewer}>
        <header className={styles.head}>
          <span className="soft num">{text.place(at + 1, total ?? items.length)}</span>
          <p className={classes(styles.label, 'cut')}>{label}</p>
          {actions?.(item)}
          {item.type === 'IMG' && (
            <IconButton
              icon="expand"
              label={actual ? text.fitWindow : text.actualSize}
              on={actual}
              onClick={() => setActual(!actual)}
            />
          )}
          <IconButton icon="close" label={text.close} onClick={onClose} />
        </header>
        <div className={styles.stage}>
          <IconButton
            kind="pill"
            icon="chevronLeft"
            label={text.previous}
            className={styles.previous}
            disabled={at === 0}
            onClick={() => move(-1)}
          />
          <Content key={item.id} item={item} label={label} actual={actual} />
          <IconButton
            kind="pill"
            icon="chevronRight"
            label={text.next}
            className={styles.next}
            disabled={at >= items.length - 1}
            onClick={() => move(1)}
          />
        </div>
        <Neighbours items={items} at={at} />
      </div>
    </Dialog>
  );
}

function Content({ item, label, actual }: { item: ViewerItem; label: string; actual: boolean }) {
  if (!item.url) {
    return <p className={styles.note}>{text.gone}</p>;
  }
  switch (item.type) {
    case 'VID':
      return <Player kind="VID" src={item.url} poster={item.preview_url} label={label} autoPlay />;
    case 'AUDIO':
      return (
        <div className={styles.sound}>
          <Icon name="wave" />
          <Player kind="AUDIO" src={item.url} label={label} autoPlay />
        </div>
      );
    case 'TEXT':
      return <TextContent id={item.id} url={item.url} label={label} />;
    case 'ASSET_3D':
      return (
        <div className={styles.model}>
          <Picture src={item.thumb_url} alt={label} blurhash={item.blurhash} fit="contain" ratio={1} eager />
          <p className="soft">{text.model}</p>
        </div>
      );
    default:
      return <Large item={item} label={label} actual={actual} />;
  }
}

/** Large shows the thumbnail at once and the file above it as soon as it is there, at the same place. */
function Large({ item, label, actual }: { item: ViewerItem; label: string; actual: boolean }) {
  const width = item.width ?? undefined;
  const height = item.height ?? undefined;

  return (
    <section className={classes(styles.large, actual && styles.actual)} aria-label={label} tabIndex={actual ? 0 : -1}>
      <img
        src={item.url ?? undefined}
        alt={label}
        width={width}
        height={height}
        style={item.thumb_url ? { backgroundImage: `url("${item.thumb_url}")` } : undefined}
        decoding="async"
      />
    </section>
  );
}

function TextContent({ id, url, label }: { id: string; url: string; label: string }) {
  const content = useQuery({
    queryKey: ['text', id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const response = await fetch(url);
      if (!response.ok) {
        throw new Error(`The file was answered with ${response.status}.`);
      }
      return response.text();
    },
  });

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard.
    <pre className={styles.text} tabIndex={0} role="region" aria-label={label}>
      {content.isError ? text.textFailed : content.data}
    </pre>
  );
}

/** Neighbours loads the pictures before and after the shown one, so that moving shows them at once. */
function Neighbours({ items, at }: { items: ViewerItem[]; at: number }) {
  const near = [items[at - 1], items[at + 1]].filter((item) => item?.type === 'IMG' && item.url);

  return (
    <div hidden>
      {near.map((item) => (
        <img key={item?.id} src={item?.url ?? undefined} alt="" />
      ))}
    </div>
  );
}
