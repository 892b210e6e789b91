import type { NodeProps } from '@xyflow/react';
import { memo, Suspense } from 'react';
import { classes } from '../ui/classes';
import { part } from '../ui/part';
import { type FlowNode, isDrawnSame } from './flow';
import { Grips } from './Grips';
import { Halo } from './Halo';
import styles from './Node.module.css';

const RunFace = part(() => import('./RunFace').then(({ RunFace }) => ({ default: RunFace })));

/** RunNode shows a run where it was started. */
export const RunNode = memo(function RunNode({ id, data, selected }: NodeProps<FlowNode>) {
  return (
    <div className={classes(styles.node, selected && styles.selected)}>
      <Suspense fallback={<div className={styles.running} />}>
        <RunFace node={data.node} />
      </Suspense>
      <Halo nodeKey={id} />
      {selected && <Grips nodeKey={id} ratio />}
    </div>
  );
}, isDrawnSame);
