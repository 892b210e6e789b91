import type { Schemas } from '../api/client';
import { text } from '../text/flows';
import { Icon } from '../ui/Icon';
import type { IconName } from '../ui/icons';
import { Progress } from '../ui/Progress';
import styles from './RunSteps.module.css';
import type { Run } from './runs';

export type RunStep = Schemas['GenerationStep'];

const icons: Record<RunStep['status'], IconName> = {
  pending: 'clock',
  succeeded: 'check',
  failed: 'alert',
  cancelled: 'stop',
};

/** stateOf says in a word how a step goes. */
export function stateOf(step: RunStep): string {
  if (step.reused) {
    return text.reused;
  }
  return step.stage === 'running' ? text.running : text.status[step.status];
}

/** RunSteps lists the steps of a flow's run in a fold: their tools, how they go, and their results. */
export function RunSteps({ run, open }: { run: Run; open?: boolean }) {
  const steps = run.steps ?? [];
  if (steps.length === 0) {
    return null;
  }
  const done = steps.filter((step) => step.status === 'succeeded').length;

  return (
    <details className={styles.fold} open={open}>
      <summary>{text.stepsOf(done, steps.length)}</summary>
      <ul className={styles.steps}>
        {steps.map((step) => (
          <li key={step.request_id} className={styles.step} data-status={step.status}>
            <Icon name={icons[step.status]} small />
            <span className={styles.name}>
              <b className="cut">{step.item > 0 ? text.stepItem(step.step, step.item + 1) : step.step}</b>
              <span className="small soft cut">{step.tool_name}</span>
            </span>
            <span className={styles.state}>{step.error?.message ?? stateOf(step)}</span>
            <StepThumbs step={step} most={4} />
            {step.status === 'pending' && step.stage === 'running' && (
              <span className={styles.progress}>
                <Progress label={text.progressOf(step.step)} value={step.progress} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** StepThumbs shows the first results of a step as small pictures that open the files. */
export function StepThumbs({ step, most }: { step: RunStep; most: number }) {
  const outputs = step.outputs.filter((output) => !output.expired && output.url);
  if (outputs.length === 0) {
    return null;
  }
  return (
    <span className={styles.thumbs}>
      {outputs.slice(0, most).map((output, at) => (
        <a
          key={output.id}
          href={output.url ?? ''}
          target="_blank"
          rel="noreferrer"
          className="nodrag"
          aria-label={text.resultOf(step.step, at + 1)}
        >
          {output.thumb_url ? (
            <img src={output.thumb_url} alt="" draggable={false} loading="lazy" />
          ) : (
            <Icon name={output.type === 'AUDIO' ? 'wave' : output.type === 'VID' ? 'film' : 'box'} />
          )}
        </a>
      ))}
    </span>
  );
}
