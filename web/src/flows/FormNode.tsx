import { Handle, Position, useUpdateNodeInternals } from '@xyflow/react';
import { useEffect } from 'react';
import { text } from '../text/flows';
import { Icon } from '../ui/Icon';
import { useFlowEditor } from './context';
import styles from './FlowNode.module.css';
import { fieldHandle } from './graph';
import { kindOfType, nameOfKind } from './kinds';
import { formId } from './layout';
import { leavesOfFlow } from './model';

/** FormNode is the form of the flow on the canvas: each of its fields can be connected with inputs of steps. */
export function FormNode() {
  const { draft, check, selected } = useFlowEditor();
  const fields = leavesOfFlow(draft.fields).filter((field) => field.type !== 'HEADER' && field.type !== 'HTML');
  const problems = check.problems.filter((problem) => problem.node === formId);
  const update = useUpdateNodeInternals();
  const keys = fields.map((field) => field.key).join(' ');

  // biome-ignore lint/correctness/useExhaustiveDependencies: other fields have handles at other places.
  useEffect(() => update(formId), [keys, update]);

  return (
    <div className={styles.node} data-selected={selected === formId || undefined} data-form>
      <div className={styles.head}>
        <span className={styles.mark}>
          <Icon name="text" />
        </span>
        <span className={styles.title}>
          <b className="cut">{text.form}</b>
        </span>
        {problems.length > 0 && <span className={styles.badge}>{problems.length}</span>}
      </div>
      <ul className={styles.rows}>
        {fields.map((field) => {
          const kind = kindOfType(field.type);
          const wrong = problems.some((problem) => problem.part === field.key);
          return (
            <li key={field.key} className={styles.row} data-wrong={wrong || undefined}>
              <span className="cut grow">
                {field.label || field.key}
                {field.required === true && <span aria-hidden="true"> *</span>}
              </span>
              <span className={styles.kind}>{nameOfKind(kind)}</span>
              <Handle
                type="source"
                position={Position.Right}
                id={fieldHandle(field.key ?? '')}
                className={styles.handle}
                data-kind={kind.medium ?? kind.family}
              />
            </li>
          );
        })}
        {fields.length === 0 && <li className={styles.none}>{text.noFields}</li>}
      </ul>
    </div>
  );
}
