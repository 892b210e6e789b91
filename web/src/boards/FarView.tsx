import { useStoreApi } from '@xyflow/react';
import { useEffect, useLayoutEffect, useRef } from 'react';
import styles from './Canvas.module.css';
import { useBoard } from './context';
import type { FarStage } from './far';
import { FarPainter } from './farPainter';
import type { FlowNode } from './flow';
import { watchTheme } from './theme';

type Props = { stage: FarStage; onReady: () => void };

/** FarView is the board seen from afar: its nodes on one canvas. The elements of the nodes above it take the pointer. */
export function FarView({ stage, onReady }: Props) {
  const { editing } = useBoard();
  const store = useStoreApi<FlowNode>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<FarPainter>(undefined);
  const ready = useRef(onReady);
  ready.current = onReady;

  useLayoutEffect(() => {
    if (!canvas.current) {
      return;
    }
    const made = new FarPainter(canvas.current, store, () => ready.current());
    painter.current = made;
    const stop = watchTheme(() => made.takeTheme());
    return () => {
      stop();
      made.close();
    };
  }, [store]);

  useEffect(() => {
    if (stage === 'near') {
      painter.current?.pause();
    } else {
      painter.current?.start();
    }
  }, [stage]);

  useEffect(() => painter.current?.hide(editing), [editing]);

  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: this canvas cannot be focused.
  return <canvas ref={canvas} className={styles.far} data-stage={stage} aria-hidden="true" />;
}
