import { FieldInput } from '../form/FieldInput';
import type { Leaf, Value } from '../form/fields';
import type { Uploads } from '../form/uploads';
import { text } from '../text/flows';
import { NumberInput, Select } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { useFlowEditor } from './context';
import { DefinitionView } from './DefinitionView';
import { addField, resultSource, setInput, wouldCircle } from './edit';
import { fieldOfLeaf } from './formfields';
import { kindOfType, nameOfKind, refuseField, refuseResult } from './kinds';
import { constantSource, leavesOfFlow, type ReadSource, readSource, type Step } from './model';
import styles from './Panel.module.css';

/** noUploads stands for the uploads of a form that has no files. */
export const noUploads: Uploads = { sending: [], problems: {}, addFiles: () => {}, clearProblem: () => {} };

type Props = { step: Step; leaf: Leaf; problem: string | undefined };

/** SourceField says where an input of a step comes from: a value, a field of the form, or results of another step. */
export function SourceField({ step, leaf, problem }: Props) {
  const { draft, tools, change } = useFlowEditor();
  const key = leaf.fieldKey;
  const source = step.inputs?.[key];
  const read = source === undefined ? undefined : readSource(source);
  const kind = kindOfType(leaf.type);
  const isFile = kind.family === 'file';
  const isValue = !isFile && (read === undefined || read.kind === 'constant');

  const set = (next: unknown, mark?: string) => change((before) => setInput(before, step.id, key, next), mark);
  const fields = leavesOfFlow(draft.fields).filter(
    (field) => refuseField(kindOfType(field.type), kind) === undefined || chosenIn(read, 'field', field.key ?? ''),
  );
  const steps = draft.steps.filter((other) => {
    const tool = tools.get(other.tool);
    const fits =
      other.id !== step.id &&
      tool &&
      refuseResult(tool.output.type, kind) === undefined &&
      !wouldCircle(draft.steps, other.id, step.id);
    return fits || chosenIn(read, 'step', other.id);
  });

  const choose = (choice: string) => {
    const [what, ...rest] = choice.split(':');
    const name = rest.join(':');
    if (what === 'field') {
      set({ field: name });
    } else if (what === 'step') {
      set(resultSource(name, kind.many));
    } else if (what === 'item') {
      set({ item: true });
    } else if (what === 'new') {
      change((before) => {
        const added = addField(before, fieldOfLeaf(leaf));
        return setInput(added.draft, step.id, key, { field: added.key });
      });
    } else if (what === 'constant') {
      set(constantSource(leaf.defaultValue ?? firstConstant(leaf)));
    } else if (what === 'none') {
      set(undefined);
    }
  };

  return (
    <div className={styles.input} data-input={key}>
      {isValue ? (
        <FieldInput
          field={leaf}
          value={(read?.kind === 'constant' ? read.value : leaf.defaultValue) as Value}
          problem={problem}
          uploads={noUploads}
          onChange={(next) => {
            const value =
              typeof next === 'function' ? next(read?.kind === 'constant' ? (read.value as Value) : undefined) : next;
            set(value === undefined ? undefined : constantSource(value), `${step.id} ${key}`);
          }}
        />
      ) : (
        <p className={styles.label}>
          {leaf.label} <span className="small soft">{nameOfKind(kind)}</span>
        </p>
      )}
      <div className={styles.source}>
        <Select
          aria-label={text.sourceOf(leaf.label)}
          value={choiceOf(read)}
          onChange={(event) => choose(event.target.value)}
        >
          <option value="none">{isFile ? text.notSet : text.ownDefault}</option>
          {!isFile && <option value="constant">{text.constant}</option>}
          {step.for_each !== undefined && isFile && <option value="item">{text.item}</option>}
          <optgroup label={text.fromForm}>
            {fields.map((field) => (
              <option key={field.key} value={`field:${field.key}`}>
                {field.label || field.key}
              </option>
            ))}
            <option value="new">{text.newField}</option>
          </optgroup>
          {steps.length > 0 && (
            <optgroup label={text.fromSteps}>
              {steps.map((other) => (
                <option key={other.id} value={`step:${other.id}`}>
                  {other.id}
                </option>
              ))}
            </optgroup>
          )}
          {isOther(read) && <option value="other">{text.several}</option>}
        </Select>
        {read?.kind === 'step' && (
          <ResultPick read={read} many={kind.many} onChange={(result) => set({ step: read.step, result })} />
        )}
      </div>
      {isOther(read) && <DefinitionView value={source} />}
      {!isValue && problem && (
        <p className={styles.problem}>
          <Icon name="alert" small />
          {problem}
        </p>
      )}
    </div>
  );
}

function choiceOf(read: ReadSource | undefined): string {
  switch (read?.kind) {
    case undefined:
      return 'none';
    case 'constant':
    case 'item':
      return read.kind;
    case 'field':
      return `field:${read.field}`;
    case 'step':
      return `step:${read.step}`;
    default:
      return 'other';
  }
}

const isOther = (read: ReadSource | undefined) => read !== undefined && choiceOf(read) === 'other';

const chosenIn = (read: ReadSource | undefined, kind: 'field' | 'step', name: string) =>
  choiceOf(read) === `${kind}:${name}`;

/** firstConstant is a value to begin with for an input that has none of its own. */
function firstConstant(leaf: Leaf): unknown {
  switch (kindOfType(leaf.type).family) {
    case 'number':
    case 'seed':
      return leaf.display.min ?? 0;
    case 'boolean':
      return false;
    case 'multiselect':
      return [];
    case 'size':
      return { width: leaf.display.min ?? 512, height: leaf.display.min ?? 512 };
    default:
      return '';
  }
}

type Result = 'first' | 'all' | number;
type ResultPickProps = {
  read: Extract<ReadSource, { kind: 'step' }>;
  many: boolean;
  onChange: (result: Result) => void;
};

function ResultPick({ read, many, onChange }: ResultPickProps) {
  const { result } = read;
  const isNumber = typeof result === 'number';

  return (
    <>
      <Select
        aria-label={text.resultPick}
        value={isNumber ? 'number' : result}
        onChange={(event) => onChange(event.target.value === 'number' ? 0 : (event.target.value as Result))}
      >
        <option value="first">{text.firstResult}</option>
        {(many || result === 'all') && <option value="all">{text.allResults}</option>}
        <option value="number">{text.oneResult}</option>
      </Select>
      {isNumber && (
        <NumberInput
          aria-label={text.resultNumber}
          min={1}
          max={64}
          step={1}
          value={result + 1}
          onChange={(next) => onChange(Math.max(0, Math.round((next ?? 1) - 1)))}
        />
      )}
    </>
  );
}
