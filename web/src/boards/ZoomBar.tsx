import { useReactFlow, useStore } from '@xyflow/react';
import { text } from '../text/boards';
import { Button, IconButton } from '../ui/Button';
import styles from './Board.module.css';

/** ZoomBar shows how large the board is drawn, and changes it. */
export function ZoomBar({ onShowAll }: { onShowAll: () => void }) {
  const flow = useReactFlow();
  const percent = useStore((state) => Math.round(state.transform[2] * 100));

  return (
    <div className={styles.zoom}>
      <IconButton icon="minus" label={text.zoomOut} onClick={() => void flow.zoomOut({ duration: 120 })} />
      <Button
        kind="bare"
        className="num"
        aria-label={text.zoomReset(percent / 100)}
        onClick={() => void flow.zoomTo(1, { duration: 120 })}
      >
        {text.zoom(percent / 100)}
      </Button>
      <IconButton icon="plus" label={text.zoomIn} onClick={() => void flow.zoomIn({ duration: 120 })} />
      <i />
      <IconButton icon="expand" label={text.showAll} onClick={onShowAll} />
    </div>
  );
}
