import { text } from '../text/library';
import { Waiting } from '../ui/States';
import styles from './Library.module.css';

/** WaitingTiles keeps the room of the tiles until the list is read. */
export function WaitingTiles() {
  return (
    <Waiting label={text.loading}>
      <div className={styles.bones} aria-hidden="true">
        {Array.from({ length: 60 }, (_, tile) => (
          <i key={tile} />
        ))}
      </div>
    </Waiting>
  );
}
