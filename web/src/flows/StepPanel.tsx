import type { ToolDetail } from '../data/catalog';
import { ToolPicture } from '../data/ToolPicture';
import { type Leaf, leavesOf } from '../form/fields';
import { text } from '../text/flows';
import { Button } from '../ui/Button';
import { Switch } from '../ui/Field';
import { useFlowEditor } from './context';
import { changeStep, moveStep, removeStep, setPart, setResult } from './edit';
import { resultsOf, type Step } from './model';
import { NameField } from './NameField';
import styles from './Panel.module.css';
import { sentenceOf } from './problems';
import { CountField, ForEachField, OtherwiseField, WhenField } from './RunFields';
import { SourceField } from './SourceField';

const idPattern = /^[a-z][a-z0-9_]{0,31}$/;

/** StepPanel changes a step: its name, where its inputs come from, and how it runs. */
export function StepPanel({ step }: { step: Step }) {
  const { draft, tools, check, change, rename, select, runPart } = useFlowEditor();
  const tool = tools.get(step.tool);
  const problems = check.problems.filter((problem) => problem.node === step.id);
  const parts = new Set(leavesOf(tool?.fields ?? []).map((leaf) => `inputs.${leaf.fieldKey}`));
  const others = problems.filter((problem) => !parts.has(problem.part));

  const refuseId = (id: string) => {
    if (!idPattern.test(id)) {
      return text.badId;
    }
    return draft.steps.some((one) => one.id === id) ? text.takenId : undefined;
  };

  return (
    <div className={styles.content}>
      <div className={styles.tool}>
        <ToolPicture tool={tool ?? { avatar_url: null }} />
        <span className="grow">
          <b className="cut">{tool?.name ?? step.tool}</b>
          <span className="small soft">{tool?.description}</span>
        </span>
      </div>
      {tool === null && <p className={styles.problem}>{text.unknownTool}</p>}
      {others.map((problem) => (
        <p key={`${problem.part} ${problem.message}`} className={styles.problem}>
          {sentenceOf(problem.message)}
        </p>
      ))}
      <NameField
        label={text.stepId}
        help={text.stepIdHelp}
        value={step.id}
        refuse={refuseId}
        onChange={(id) => rename(step.id, id)}
      />
      {tool && (
        <Inputs step={step} tool={tool} problemOf={(part) => problems.find((one) => one.part === part)?.message} />
      )}
      <section className={styles.section} aria-label={text.howItRuns}>
        <h3>{text.howItRuns}</h3>
        {tool?.num_results && <CountField step={step} />}
        <ForEachField step={step} tool={tool ?? undefined} />
        <WhenField step={step} />
        <OtherwiseField step={step} />
        <Switch
          label={text.isResult}
          help={text.isResultHelp}
          checked={resultsOf(draft).includes(step.id)}
          onChange={(event) => change((before) => setResult(before, step.id, event.target.checked))}
        />
        <Switch
          label={text.drop}
          help={text.dropHelp}
          checked={step.drop === true}
          onChange={(event) =>
            change((before) =>
              changeStep(before, step.id, (one) => setPart(one, 'drop', event.target.checked || undefined)),
            )
          }
        />
      </section>
      <div className={styles.acts}>
        <Button small icon="play" onClick={() => runPart(step.id)}>
          {text.runPart}
        </Button>
        <Button
          small
          disabled={draft.steps[0]?.id === step.id}
          onClick={() => change((before) => moveStep(before, step.id, -1))}
        >
          {text.earlier}
        </Button>
        <Button
          small
          disabled={draft.steps.at(-1)?.id === step.id}
          onClick={() => change((before) => moveStep(before, step.id, 1))}
        >
          {text.later}
        </Button>
        <Button
          small
          kind="danger"
          icon="trash"
          onClick={() => {
            select(undefined);
            change((before) => removeStep(before, step.id));
          }}
        >
          {text.removeStep}
        </Button>
      </div>
    </div>
  );
}

type InputsProps = { step: Step; tool: ToolDetail; problemOf: (part: string) => string | undefined };

/** Inputs are the fields of the step's tool; advanced ones that nothing was done to are in a fold. */
function Inputs({ step, tool, problemOf }: InputsProps) {
  const leaves = leavesOf(tool.fields);
  const isHidden = (leaf: Leaf) => leaf.display.advanced === true && step.inputs?.[leaf.fieldKey] === undefined;
  const field = (leaf: Leaf) => {
    const problem = problemOf(`inputs.${leaf.fieldKey}`);
    return <SourceField key={leaf.fieldKey} step={step} leaf={leaf} problem={problem && sentenceOf(problem)} />;
  };
  const hidden = leaves.filter(isHidden);

  return (
    <section className={styles.section} aria-label={text.inputs}>
      <h3>{text.inputs}</h3>
      {leaves.filter((leaf) => !isHidden(leaf)).map(field)}
      {hidden.length > 0 && (
        <details className={styles.fold}>
          <summary>{text.more}</summary>
          <div className={styles.folded}>{hidden.map(field)}</div>
        </details>
      )}
    </section>
  );
}
