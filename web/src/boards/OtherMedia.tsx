import { text } from '../text/boards';
import { classes } from '../ui/classes';
import { formatSeconds } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Player } from '../ui/Player';
import type { NodeItem } from './model';
import styles from './Node.module.css';

type Props = { item: NodeItem; playing: boolean; onStop: () => void };

/** OtherMedia shows what a picture alone does not: that a node is a video, a sound, a 3D model or another file, and plays it. */
export function OtherMedia({ item, playing, onStop }: Props) {
  switch (item.type) {
    case 'VID':
      return playing ? <Film item={item} onStop={onStop} /> : <Length seconds={item.duration_seconds} />;
    case 'AUDIO':
      return (
        <span className={classes(styles.sound, 'nodrag')}>
          <span className="row small soft">
            <Icon name="music" small />
            {text.soundNode}
          </span>
          <Player kind="AUDIO" src={item.url} label={text.soundNode} />
        </span>
      );
    default:
      return (
        <span className={styles.badge}>
          <Icon name="box" small />
          {item.type === 'ASSET_3D' ? text.modelNode : text.fileNode}
        </span>
      );
  }
}

/** Film plays a video in place. */
function Film({ item, onStop }: { item: NodeItem; onStop: () => void }) {
  return (
    <span className={classes(styles.film, 'nodrag')}>
      <Player kind="VID" src={item.url} poster={item.preview_url} label={text.videoNode} autoPlay />
      <button type="button" className={styles.stop} aria-label={text.close} onClick={onStop}>
        <Icon name="close" small />
      </button>
    </span>
  );
}

function Length({ seconds }: { seconds: number | null }) {
  return (
    seconds !== null && (
      <span className={styles.badge}>
        <Icon name="film" small />
        {formatSeconds(seconds)}
      </span>
    )
  );
}
