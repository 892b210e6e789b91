import { Handle, type NodeProps, Position, useUpdateNodeInternals } from '@xyflow/react';
import { useEffect } from 'react';
import { ToolPicture } from '../data/ToolPicture';
import { text } from '../text/flows';
import { Icon } from '../ui/Icon';
import { useFlowEditor } from './context';
import styles from './FlowNode.module.css';
import { eachHandle, inputHandle, outputHandle, outputKind, rowsOf } from './graph';
import { nameOfKind } from './kinds';
import { resultsOf } from './model';
import { StepRun } from './StepRun';

/** StepNode is a step on the canvas: its tool, the inputs that lines can feed, its price, and how its last run went. */
export function StepNode({ id }: NodeProps) {
  const { draft, tools, check, run, selected } = useFlowEditor();
  const step = draft.steps.find((one) => one.id === id);
  const tool = step && tools.get(step.tool);
  const rows = step ? rowsOf(step, tool) : [];
  const update = useUpdateNodeInternals();
  const shape = `${rows.map((row) => row.key).join(' ')} ${step?.for_each !== undefined}`;

  // biome-ignore lint/correctness/useExhaustiveDependencies: other inputs have handles at other places.
  useEffect(() => update(id), [id, shape, update]);

  if (!step) {
    return null;
  }
  const problems = check.problems.filter((problem) => problem.node === id);
  const all = check.price?.steps.filter((share) => share.step === id) ?? [];
  const paid = all.filter((share) => share.tokens > 0);
  const shares = paid.length > 0 ? paid : all.slice(0, 1);
  const kind = outputKind(step, tool);

  return (
    <div
      className={styles.node}
      data-selected={selected === id || undefined}
      data-wrong={problems.length > 0 || undefined}
    >
      <div className={styles.head}>
        <ToolPicture tool={tool ?? { avatar_url: null }} />
        <span className={styles.title}>
          <b className="cut">{tool?.name ?? step.tool}</b>
          <span className="small soft cut">{id}</span>
        </span>
        {problems.length > 0 && (
          <span className={styles.badge} title={text.problems(problems.length)}>
            {problems.length}
          </span>
        )}
      </div>
      {tool === null && <p className={styles.gone}>{text.unknownTool}</p>}
      <ul className={styles.rows}>
        {step.for_each !== undefined && (
          <li className={styles.row}>
            <Handle type="target" position={Position.Left} id={eachHandle} className={styles.handle} data-kind="each" />
            <Icon name="repeat" small />
            <span className="cut grow">{text.each}</span>
          </li>
        )}
        {rows.map((row) => (
          <li
            key={row.key}
            className={styles.row}
            data-missing={row.missing || undefined}
            data-wrong={problems.some((problem) => problem.part === `inputs.${row.key}`) || undefined}
          >
            <Handle
              type="target"
              position={Position.Left}
              id={inputHandle(row.key)}
              className={styles.handle}
              data-kind={row.kind.medium ?? row.kind.family}
            />
            <span className={styles.rowLabel}>{row.label}</span>
            <span className={styles.kind}>{row.missing ? text.needed : (row.note ?? nameOfKind(row.kind))}</span>
          </li>
        ))}
      </ul>
      <StepRun step={id} run={run} />
      <div className={styles.foot}>
        <span className="num soft">{shares.map((share) => text.share(share.runs, share.tokens)).join(' + ')}</span>
        <span className="grow" />
        {resultsOf(draft).includes(id) && (
          <span className={styles.result} title={text.result}>
            <Icon name="check" small />
            <span className="unseen">{text.result}</span>
          </span>
        )}
        {kind && <span className={styles.kind}>{nameOfKind(kind)}</span>}
        <Handle
          type="source"
          position={Position.Right}
          id={outputHandle}
          className={styles.handle}
          data-kind={kind?.medium}
        />
      </div>
    </div>
  );
}
