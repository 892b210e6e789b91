import { ViewportPortal } from '@xyflow/react';
import { useSyncExternalStore } from 'react';
import styles from './Canvas.module.css';
import { useBoard } from './context';
import { personColor } from './presence';

/** Cursors shows where the others point. */
export function Cursors() {
  const { presence } = useBoard().session;
  const others = useSyncExternalStore(presence.subscribe, presence.getOthers);

  return (
    <ViewportPortal>
      {others.map(
        ({ uid, name, cursor }) =>
          cursor && (
            <span
              key={uid}
              className={styles.cursor}
              data-color={personColor(uid)}
              style={{ transform: `translate(${cursor.x}px, ${cursor.y}px) scale(calc(1 / var(--zoom, 1)))` }}
              aria-hidden="true"
            >
              <svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">
                <path d="M4 4 20 10.5 13 13 10.5 20Z" />
              </svg>
              <b>{name}</b>
            </span>
          ),
      )}
    </ViewportPortal>
  );
}
