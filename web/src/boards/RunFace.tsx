import { useSyncExternalStore } from 'react';
import { api } from '../api/client';
import { useAccount } from '../data/account';
import { text } from '../text/boards';
import { Button } from '../ui/Button';
import { classes } from '../ui/classes';
import { Icon } from '../ui/Icon';
import { Progress } from '../ui/Progress';
import { useBoard } from './context';
import type { BoardNode } from './model';
import styles from './Node.module.css';

/** RunFace shows the preview and progress of a run, or why it has no result. */
export function RunFace({ node }: { node: BoardNode }) {
  const { session, actions } = useBoard();
  const { teamId } = useAccount();
  const { runs } = session;
  const id = node.ref ?? '';
  const run = useSyncExternalStore(runs.subscribe, () => runs.runOf(id));
  const preview = useSyncExternalStore(runs.subscribe, () => runs.previewOf(id));
  const status = run?.status ?? node.status ?? 'pending';
  const what = [run?.tool_name, run?.prompt].filter(Boolean).join(' · ') || text.run;

  if (node.missing || status === 'failed' || status === 'cancelled') {
    const reason = node.missing
      ? text.runGone
      : (run?.error?.message ?? (status === 'cancelled' ? text.runCancelled : text.runFailed));
    return (
      <div className={styles.failed}>
        <Icon name="alert" />
        <p className="small cut">{what}</p>
        <p className="small">{reason}</p>
        {!node.missing && (
          <Button small icon="repeat" className="nodrag" onClick={() => actions.runAgain(node.key)}>
            {text.tryAgain}
          </Button>
        )}
      </div>
    );
  }

  const cancel = () => {
    const params = { path: { request_id: id }, query: { team_id: teamId } };
    void api.POST('/generate/{request_id}/cancel', { params }).catch(() => undefined);
  };
  return (
    <div className={styles.running}>
      {preview ? (
        <img src={preview} alt="" draggable={false} className={styles.picture} />
      ) : (
        <span className={styles.wash} />
      )}
      <div className={styles.runBox}>
        <span className={styles.runWords}>{what}</span>
        {run?.stage === 'queued' && <span>{text.runQueued(run.queue_position)}</span>}
        <Progress label={text.runProgress} value={run?.progress ?? null} tone="light" />
      </div>
      <button type="button" className={classes(styles.stop, 'nodrag')} aria-label={text.cancelRun} onClick={cancel}>
        <Icon name="close" small />
      </button>
    </div>
  );
}
