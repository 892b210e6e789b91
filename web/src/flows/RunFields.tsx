import type { ToolDetail } from '../data/catalog';
import { FieldInput } from '../form/FieldInput';
import type { Value } from '../form/fields';
import { text } from '../text/flows';
import { Field, NumberInput, Select } from '../ui/Field';
import { useFlowEditor } from './context';
import { DefinitionView } from './DefinitionView';
import { changeStep, setForEach, setPart, wouldCircle } from './edit';
import { leafOfField } from './formfields';
import { isList, kindOfType } from './kinds';
import { type Condition, type FlowField, leavesOfFlow, readSource, type Step } from './model';
import styles from './Panel.module.css';
import { noUploads } from './SourceField';

// How a step runs: how many results, for which items, under which condition, and what happens if it fails.

/** CountField says how many results a step makes: a number, or a field of the form. */
export function CountField({ step }: { step: Step }) {
  const { draft, tools, change } = useFlowEditor();
  const limits = tools.get(step.tool)?.num_results;
  const read = step.num_results === undefined ? undefined : readSource(step.num_results);
  const fields = leavesOfFlow(draft.fields).filter((field) => kindOfType(field.type).family === 'number');
  const set = (value: unknown, mark?: string) =>
    change((before) => changeStep(before, step.id, (one) => setPart(one, 'num_results', value)), mark);
  const choice = read?.kind === 'field' ? `field:${read.field}` : read ? 'number' : 'own';

  return (
    <Field label={text.count}>
      {(attributes) => (
        <div className={styles.source}>
          <Select
            {...attributes}
            value={choice}
            onChange={({ target: { value } }) =>
              set(value === 'own' ? undefined : value === 'number' ? (limits?.default ?? 1) : { field: value.slice(6) })
            }
          >
            <option value="own">{text.countOwn}</option>
            <option value="number">{text.countNumber}</option>
            {fields.map((field) => (
              <option key={field.key} value={`field:${field.key}`}>
                {field.label || field.key}
              </option>
            ))}
          </Select>
          {read?.kind === 'constant' && (
            <NumberInput
              aria-label={text.count}
              min={Math.max(1, limits?.min ?? 1)}
              max={limits?.max}
              step={1}
              value={typeof read.value === 'number' ? read.value : 1}
              onChange={(next) => set(next ?? 1, `${step.id} count`)}
            />
          )}
        </div>
      )}
    </Field>
  );
}

/** ForEachField lets a step run once per item of a list. */
export function ForEachField({ step, tool }: { step: Step; tool: ToolDetail | undefined }) {
  const { draft, change } = useFlowEditor();
  const read = step.for_each === undefined ? undefined : readSource(step.for_each);
  const lists = leavesOfFlow(draft.fields).filter(isList);
  const steps = draft.steps.filter((other) => other.id !== step.id && !wouldCircle(draft.steps, other.id, step.id));
  const choice = read?.kind === 'field' ? `field:${read.field}` : read?.kind === 'step' ? `step:${read.step}` : 'none';

  const choose = (value: string) => {
    const [kind, name] = [value.slice(0, value.indexOf(':')), value.slice(value.indexOf(':') + 1)];
    change((before) => setForEach(before, step.id, value === 'none' ? undefined : { [kind]: name }, tool));
  };

  return (
    <>
      <Field label={text.forEach}>
        {(attributes) => (
          <Select {...attributes} value={choice} onChange={(event) => choose(event.target.value)}>
            <option value="none">{text.forEachNone}</option>
            {lists.map((field) => (
              <option key={field.key} value={`field:${field.key}`}>
                {text.forEachOf(text.fieldOf(field.label || field.key || ''))}
              </option>
            ))}
            {steps.map((other) => (
              <option key={other.id} value={`step:${other.id}`}>
                {text.forEachOf(text.resultsOf(other.id))}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {read && (
        <Field label={text.max}>
          {(attributes) => (
            <NumberInput
              {...attributes}
              min={1}
              max={64}
              step={1}
              value={step.max}
              onChange={(next) =>
                change((before) => changeStep(before, step.id, (one) => ({ ...one, max: next ?? 1 })), `${step.id} max`)
              }
            />
          )}
        </Field>
      )}
    </>
  );
}

type Test = 'given' | 'notGiven' | 'is' | 'isNot';

function testOf(condition: Condition): Test {
  if (condition.given !== undefined) {
    return condition.given ? 'given' : 'notGiven';
  }
  return 'is_not' in condition ? 'isNot' : 'is';
}

function conditionOf(field: string, test: Test, value: unknown): Condition {
  switch (test) {
    case 'given':
      return { field, given: true };
    case 'notGiven':
      return { field, given: false };
    case 'is':
      return { field, is: value };
    case 'isNot':
      return { field, is_not: value };
  }
}

/** firstValue is what a condition compares with at first. */
function firstValue(field: FlowField): unknown {
  const options = Array.isArray(field.options) ? (field.options as Array<{ value: unknown }>) : [];
  const { family } = kindOfType(field.type);

  return field.default ?? options[0]?.value ?? (family === 'boolean' ? true : family === 'number' ? 0 : '');
}

/** WhenField sets the condition under which a step runs. */
export function WhenField({ step }: { step: Step }) {
  const { draft, change } = useFlowEditor();
  const { when } = step;
  const fields = leavesOfFlow(draft.fields).filter((field) => kindOfType(field.type).family !== 'none');
  const field = fields.find((one) => one.key === when?.field);
  const test = when ? testOf(when) : 'given';
  const isFile = kindOfType(field?.type).family === 'file';
  const value = when?.is ?? when?.is_not;
  const set = (next: Condition | undefined, mark?: string) =>
    change((before) => changeStep(before, step.id, (one) => setPart(one, 'when', next)), mark);

  if (fields.length === 0 && !when) {
    return null;
  }
  return (
    <>
      <Field label={text.when}>
        {(attributes) => (
          <div className={styles.source}>
            <Select
              {...attributes}
              value={when?.field ?? ''}
              onChange={(event) => set(event.target.value ? { field: event.target.value, given: true } : undefined)}
            >
              <option value="">{text.whenAlways}</option>
              {fields.map((one) => (
                <option key={one.key} value={one.key}>
                  {one.label || one.key}
                </option>
              ))}
            </Select>
            {when && (
              <Select
                aria-label={text.whenTest}
                value={test}
                onChange={(event) =>
                  set(conditionOf(when.field, event.target.value as Test, value ?? (field && firstValue(field))))
                }
              >
                <option value="given">{text.given}</option>
                <option value="notGiven">{text.notGiven}</option>
                {!isFile && <option value="is">{text.is}</option>}
                {!isFile && <option value="isNot">{text.isNot}</option>}
              </Select>
            )}
          </div>
        )}
      </Field>
      {when && field && (test === 'is' || test === 'isNot') && (
        <FieldInput
          field={{ ...leafOfField(field), label: text.whenValue, required: false }}
          value={value as Value}
          problem={undefined}
          uploads={noUploads}
          onChange={(next) => {
            const chosen = typeof next === 'function' ? next(value as Value) : next;
            set(conditionOf(when.field, test, chosen ?? ''), `${step.id} when`);
          }}
        />
      )}
    </>
  );
}

/** OtherwiseField says what happens if a step fails. */
export function OtherwiseField({ step }: { step: Step }) {
  const { change } = useFlowEditor();
  const { otherwise } = step;
  const choice = otherwise === undefined ? 'fail' : otherwise === 'skip' ? 'skip' : 'other';

  return (
    <>
      <Field label={text.otherwise}>
        {(attributes) => (
          <Select
            {...attributes}
            value={choice}
            onChange={({ target: { value } }) =>
              change((before) =>
                changeStep(before, step.id, (one) =>
                  value === 'other' ? one : setPart(one, 'otherwise', value === 'skip' ? 'skip' : undefined),
                ),
              )
            }
          >
            <option value="fail">{text.otherwiseFail}</option>
            <option value="skip">{text.otherwiseSkip}</option>
            {choice === 'other' && <option value="other">{text.inDefinition}</option>}
          </Select>
        )}
      </Field>
      {choice === 'other' && <DefinitionView value={otherwise} />}
    </>
  );
}
