import { type NodeProps, useStore } from '@xyflow/react';
import { memo, Suspense, useState } from 'react';
import { text } from '../text/boards';
import { averageColor } from '../ui/blurhash';
import { classes } from '../ui/classes';
import { Icon } from '../ui/Icon';
import { part } from '../ui/part';
import { usePainted } from './far';
import { type FlowNode, isDrawnSame } from './flow';
import { Grips } from './Grips';
import { Halo } from './Halo';
import { keepsRatio, type NodeItem, sizeOf } from './model';
import styles from './Node.module.css';

const OtherMedia = part(() => import('./OtherMedia').then(({ OtherMedia }) => ({ default: OtherMedia })));

// Thumbnails have 512 pixels at the longer side.
const thumbSide = 512;

/** MediaNode shows a result or an upload: a picture, a video, a sound or a 3D model. */
export const MediaNode = memo(function MediaNode({ id, data, selected }: NodeProps<FlowNode>) {
  const { node } = data;
  const [playing, setPlaying] = useState(false);
  const painted = usePainted(node) && !playing;
  const { item } = node;

  return (
    <div className={classes(styles.node, selected && styles.selected)}>
      {!painted && (
        <div className={styles.media}>
          {item && item.type !== 'AUDIO' && !playing && <Still item={item} width={sizeOf(node).width} />}
          {item && item.type !== 'IMG' && (
            <Suspense>
              <OtherMedia item={item} playing={playing} onStop={() => setPlaying(false)} />
            </Suspense>
          )}
          {!item && node.id && <Missing />}
        </div>
      )}
      {item?.type === 'VID' && !playing && <PlayButton painted={painted} onPlay={() => setPlaying(true)} />}
      <Halo nodeKey={id} />
      {selected && <Grips nodeKey={id} ratio={keepsRatio(node)} />}
    </div>
  );
}, isDrawnSame);

function Missing() {
  return (
    <span className={styles.missing}>
      <Icon name="image" />
      {text.missingNode}
    </span>
  );
}

/** Still shows the thumbnail until it would be stretched, then the file over it. */
function Still({ item, width }: { item: NodeItem; width: number }) {
  const small = item.thumb_url ?? item.preview_url ?? (item.type === 'IMG' ? item.url : undefined);
  const large = useStore((state) => state.transform[2] * width * devicePixelRatio > thumbSide * 1.2);
  const [loaded, setLoaded] = useState(false);
  const full = item.type === 'IMG' && large && item.url !== small;

  return (
    <>
      {small && (
        <img
          src={small}
          alt=""
          draggable={false}
          decoding="async"
          className={styles.picture}
          style={{ backgroundColor: item.blurhash ? averageColor(item.blurhash) : undefined }}
        />
      )}
      {full && (
        <img
          src={item.url}
          alt=""
          draggable={false}
          decoding="async"
          className={classes(styles.picture, styles.full, loaded && styles.loaded)}
          onLoad={() => setLoaded(true)}
        />
      )}
    </>
  );
}

/** PlayButton plays a video. From afar the canvas shows its sign. */
function PlayButton({ painted, onPlay }: { painted: boolean; onPlay: () => void }) {
  return (
    <button
      type="button"
      tabIndex={-1}
      data-play
      className={classes(styles.play, painted && styles.painted, 'nodrag')}
      aria-label={text.play}
      onClick={onPlay}
    >
      {!painted && <Icon name="play" full />}
    </button>
  );
}
