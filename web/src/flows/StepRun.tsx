import { type RunStep, StepThumbs, stateOf } from '../data/RunSteps';
import type { Run } from '../data/runs';
import { text } from '../text/flows';
import { Progress } from '../ui/Progress';
import styles from './FlowNode.module.css';

/** StepRun shows in the node of a step how the newest run of the flow goes there, and what came of it. */
export function StepRun({ step, run }: { step: string; run: Run | undefined }) {
  const runs = run?.steps?.filter((one) => one.step === step) ?? [];
  const current = runs.find((one) => one.status === 'pending') ?? runs.at(-1);
  if (!current) {
    return null;
  }
  const pictured = runs.filter((one) => one.outputs.length > 0);

  return (
    <div className={styles.run} data-status={current.status}>
      <span className={styles.state}>{stateWords(runs, current)}</span>
      {pictured.length > 0 && (
        <span className={styles.thumbs}>
          {pictured.slice(0, 4).map((one) => (
            <StepThumbs key={one.request_id} step={one} most={pictured.length > 1 ? 1 : 4} />
          ))}
        </span>
      )}
      {current.status === 'pending' && <Progress label={text.progressOf(step)} value={progressOf(current)} />}
    </div>
  );
}

function stateWords(runs: RunStep[], current: RunStep): string {
  if (current.error) {
    return current.error.message;
  }
  const done = runs.filter((one) => one.status === 'succeeded').length;

  return runs.length > 1 ? `${stateOf(current)} (${done}/${runs.length})` : stateOf(current);
}

const progressOf = (step: RunStep) => (step.stage === 'running' ? step.progress : 0);
