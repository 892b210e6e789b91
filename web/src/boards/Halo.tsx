import { useSyncExternalStore } from 'react';
import { text } from '../text/boards';
import { useBoard } from './context';
import styles from './Node.module.css';

/** Halo shows that another person holds a node, or has changed it a moment ago. */
export function Halo({ nodeKey }: { nodeKey: string }) {
  const { presence } = useBoard().session;
  const halo = useSyncExternalStore(presence.subscribe, () => presence.haloOf(nodeKey));

  if (!halo) {
    return null;
  }
  return (
    <span className={styles.halo} data-color={halo.color}>
      <b>{text.halo[halo.verb](halo.name)}</b>
    </span>
  );
}
