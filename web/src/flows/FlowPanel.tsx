import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { ToolPicture } from '../data/ToolPicture';
import { text } from '../text/flows';
import { Button } from '../ui/Button';
import { Field, Switch, TextArea } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { useMedia } from '../ui/screen';
import { useFlowEditor } from './context';
import { formId } from './layout';
import { leavesOfFlow, longestDescription } from './model';
import styles from './Panel.module.css';
import { type PlacedProblem, sentenceOf } from './problems';
import { StepRun } from './StepRun';

/** FlowPanel is about the flow as a whole: what it is for, its problems, and its parts as a list. */
export function FlowPanel() {
  const { account } = useAccount();
  const { draft, tools, check, run, change, select, addStep } = useFlowEditor();
  const small = useMedia('(max-width: 700px)');
  const countAt = (id: string) => check.problems.filter((problem) => problem.node === id).length;

  return (
    <div className={styles.content}>
      {check.error !== null && <ErrorFault error={check.error} />}
      {check.problems.length > 0 && (
        <section className="stack" aria-label={text.problemsTitle}>
          <h3>{text.problemsTitle}</h3>
          <ul className={styles.entries}>
            {check.problems.map((problem, at) => (
              <li key={at}>
                <ProblemEntry problem={problem} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <section className="stack" aria-label={text.steps}>
        <h3>{text.steps}</h3>
        <ol className={styles.entries}>
          <li>
            <button type="button" className={styles.entry} onClick={() => select(formId)}>
              <Icon name="text" />
              <span className="grow">
                <b>{text.form}</b>
                <span className="small soft">{text.formNode(leavesOfFlow(draft.fields).length)}</span>
              </span>
            </button>
          </li>
          {draft.steps.map((step) => (
            <li key={step.id}>
              <button type="button" className={styles.entry} onClick={() => select(step.id)}>
                <ToolPicture tool={tools.get(step.tool) ?? { avatar_url: null }} />
                <span className="grow">
                  <b className="cut">{step.id}</b>
                  <span className="small soft cut">{tools.get(step.tool)?.name ?? step.tool}</span>
                </span>
                {countAt(step.id) > 0 && <span className={styles.bad}>{text.problems(countAt(step.id))}</span>}
              </button>
              {small && <StepRun step={step.id} run={run} />}
            </li>
          ))}
        </ol>
        <div>
          <Button icon="plus" onClick={addStep}>
            {text.addStep}
          </Button>
        </div>
      </section>
      <section className={styles.section} aria-label={text.description}>
        <Field label={text.description}>
          {(attributes) => (
            <TextArea
              {...attributes}
              rows={3}
              maxLength={longestDescription}
              value={draft.description}
              onChange={(event) => change((before) => ({ ...before, description: event.target.value }), 'description')}
            />
          )}
        </Field>
        {account.kind === 'TEAM' && (
          <Switch
            label={text.shareFlow}
            help={text.shareFlowHelp}
            checked={draft.shared}
            onChange={(event) => change((before) => ({ ...before, shared: event.target.checked }))}
          />
        )}
      </section>
    </div>
  );
}

function ProblemEntry({ problem }: { problem: PlacedProblem }) {
  const { select } = useFlowEditor();
  const place = problem.node === undefined ? '' : problem.node === formId ? text.form : text.atStep(problem.node);

  return (
    <button
      type="button"
      className={styles.entry}
      disabled={problem.node === undefined}
      onClick={() => select(problem.node)}
    >
      <span className={styles.bad}>
        <Icon name="alert" small />
      </span>
      <span className="grow">
        {place && <b>{place}</b>}
        <span className="small">{sentenceOf(problem.message)}</span>
      </span>
    </button>
  );
}
