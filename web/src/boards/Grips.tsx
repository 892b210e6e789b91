import { NodeResizeControl, ResizeControlVariant, type ResizeParams } from '@xyflow/react';
import { useBoard, useSelection } from './context';
import styles from './Node.module.css';

type Props = {
  nodeKey: string;
  /** Keeps the shape, as pictures must. */
  ratio?: boolean;
  /** Only the width changes; the height follows the text. */
  widthOnly?: boolean;
  minWidth?: number;
  minHeight?: number;
};

const corners = ['top-left', 'top-right', 'bottom-left', 'bottom-right'] as const;

/** Grips resize the one selected node at its corners. */
export function Grips({ nodeKey, ratio, widthOnly, minWidth = 40, minHeight = 40 }: Props) {
  const { editor } = useBoard().session;
  const selection = useSelection();

  if (selection.length !== 1) {
    return null;
  }

  const start = () => editor.startHold([nodeKey], widthOnly ? ['x', 'width'] : ['x', 'y', 'width', 'height']);
  const resize = (_: unknown, { x, y, width, height }: ResizeParams) => {
    editor.hold([[nodeKey, widthOnly ? roundAll({ x, width }) : roundAll({ x, y, width, height })]]);
  };
  const common = { onResizeStart: start, onResize: resize, onResizeEnd: () => editor.endHold(), minWidth, minHeight };

  if (widthOnly) {
    return (
      <NodeResizeControl
        {...common}
        variant={ResizeControlVariant.Handle}
        position="right"
        resizeDirection="horizontal"
        className={styles.grip}
      />
    );
  }
  return corners.map((position) => (
    <NodeResizeControl key={position} {...common} position={position} keepAspectRatio={ratio} className={styles.grip} />
  ));
}

function roundAll<T extends Record<string, number>>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, Math.round(value * 100) / 100])) as T;
}
