import { useState } from 'react';
import { FieldInput } from '../form/FieldInput';
import { isEmpty, type Value } from '../form/fields';
import { text } from '../text/flows';
import { Button, IconButton } from '../ui/Button';
import { Field, NumberInput, Select, Switch, TextArea, TextInput } from '../ui/Field';
import { useFlowEditor } from './context';
import { DefinitionView } from './DefinitionView';
import { addField, changeField, moveField, nameFrom, removeField, renameField } from './edit';
import { changeType, fieldTypes, leafOfField, newField, otherSettings, readOptions, writeOptions } from './formfields';
import { kindOfType } from './kinds';
import { formId } from './layout';
import { type FlowField, leavesOfFlow } from './model';
import { NameField } from './NameField';
import styles from './Panel.module.css';
import { sentenceOf } from './problems';
import { noUploads } from './SourceField';

/** FormPanel changes the form of the flow: its fields, their order and their settings. */
export function FormPanel() {
  const { draft, change } = useFlowEditor();
  const [type, setType] = useState<string>('IMG');
  const [open, setOpen] = useState<string>();
  const fields = leavesOfFlow(draft.fields);

  const add = () => {
    const label = text.types[type] ?? type;
    const { key } = addField(draft, newField(type, nameFrom(label, 'field'), label));
    change((before) => addField(before, newField(type, nameFrom(label, 'field'), label)).draft);
    setOpen(key);
  };

  return (
    <div className={styles.content}>
      <p className="small soft">{text.formHelp}</p>
      <ul className={styles.fields}>
        {fields.map((field, at) => (
          <FieldEntry
            key={field.key}
            field={field}
            first={at === 0}
            last={at === fields.length - 1}
            open={open === field.key}
            onOpen={setOpen}
          />
        ))}
      </ul>
      <div className={styles.source}>
        <Select aria-label={text.addFieldOf} value={type} onChange={(event) => setType(event.target.value)}>
          {fieldTypes.map((one) => (
            <option key={one} value={one}>
              {text.types[one]}
            </option>
          ))}
        </Select>
        <Button icon="plus" onClick={add}>
          {text.addField}
        </Button>
      </div>
    </div>
  );
}

type FieldEntryProps = {
  field: FlowField;
  first: boolean;
  last: boolean;
  open: boolean;
  onOpen: (key: string | undefined) => void;
};

/** FieldEntry is a field of the form: a line with its label, and its settings when it is open. */
function FieldEntry({ field, first, last, open, onOpen }: FieldEntryProps) {
  const { draft, check, change } = useFlowEditor();
  const key = field.key ?? '';
  const label = field.label || key;
  const problems = check.problems.filter((problem) => problem.node === formId && problem.part === key);
  const others = otherSettings(field);

  const set = (setting: string, value: unknown) =>
    change(
      (before) =>
        changeField(before, key, ({ [setting]: _, ...rest }) =>
          value === undefined || value === '' || value === false ? rest : { ...rest, [setting]: value },
        ),
      `field ${key} ${setting}`,
    );
  const refuseKey = (next: string) => {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(next)) {
      return text.badKey;
    }
    return leavesOfFlow(draft.fields).some((one) => one.key === next) ? text.takenKey : undefined;
  };

  return (
    <li className={styles.field} data-wrong={problems.length > 0 || undefined}>
      <div className={styles.fieldHead}>
        <button
          type="button"
          className={styles.opener}
          aria-expanded={open}
          onClick={() => onOpen(open ? undefined : key)}
        >
          <b className="cut">{label}</b>
          <span className="small soft">{text.types[field.type ?? ''] ?? field.type}</span>
        </button>
        <IconButton
          small
          icon="chevronDown"
          className={styles.up}
          label={text.earlierField(label)}
          disabled={first}
          onClick={() => change((before) => moveField(before, key, -1))}
        />
        <IconButton
          small
          icon="chevronDown"
          label={text.laterField(label)}
          disabled={last}
          onClick={() => change((before) => moveField(before, key, 1))}
        />
        <IconButton
          small
          icon="trash"
          label={text.removeField(label)}
          onClick={() => change((before) => removeField(before, key))}
        />
      </div>
      {problems.map((problem) => (
        <p key={problem.message} className={styles.problem}>
          {sentenceOf(problem.message)}
        </p>
      ))}
      {open && (
        <div className={styles.settings}>
          <Field label={text.fieldLabel}>
            {(attributes) => (
              <TextInput
                {...attributes}
                value={field.label ?? ''}
                onChange={(event) =>
                  change(
                    (before) => changeField(before, key, (one) => ({ ...one, label: event.target.value })),
                    `field ${key} label`,
                  )
                }
              />
            )}
          </Field>
          <NameField
            label={text.fieldKey}
            value={key}
            refuse={refuseKey}
            onChange={(next) => {
              change((before) => renameField(before, key, next));
              onOpen(next);
            }}
          />
          <Field label={text.fieldType}>
            {(attributes) => (
              <Select
                {...attributes}
                value={field.type}
                onChange={(event) =>
                  change((before) => changeField(before, key, (one) => changeType(one, event.target.value)))
                }
              >
                {!fieldTypes.some((one) => one === field.type) && (
                  <option value={field.type}>{text.types[field.type ?? ''] ?? field.type}</option>
                )}
                {fieldTypes.map((one) => (
                  <option key={one} value={one}>
                    {text.types[one]}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Switch
            label={text.required}
            checked={field.required === true}
            onChange={(event) => set('required', event.target.checked)}
          />
          <Limits field={field} set={set} />
          <DefaultField field={field} set={set} />
          <Field label={text.help}>
            {(attributes) => (
              <TextInput
                {...attributes}
                value={typeof field.help === 'string' ? field.help : ''}
                onChange={(event) => set('help', event.target.value)}
              />
            )}
          </Field>
          {others && <DefinitionView value={others} />}
        </div>
      )}
    </li>
  );
}

type SettingProps = { field: FlowField; set: (setting: string, value: unknown) => void };

/** Limits are the bounds of a field's values, by its type. */
function Limits({ field, set }: SettingProps) {
  const { family } = kindOfType(field.type);
  const number = (setting: string, label: string, least?: number) => (
    <Field label={label}>
      {(attributes) => (
        <NumberInput
          {...attributes}
          min={least}
          step="any"
          value={typeof field[setting] === 'number' ? field[setting] : undefined}
          onChange={(next) => set(setting, next)}
        />
      )}
    </Field>
  );

  if (family === 'text') {
    return number('max_length', text.maxLength, 1);
  }
  if (family === 'number') {
    return (
      <>
        <div className={styles.pair}>
          {number('min', text.minimum)}
          {number('max', text.maximum)}
          {number('step', text.stride)}
        </div>
        <Switch
          label={text.whole}
          checked={field.integer === true}
          onChange={(event) => set('integer', event.target.checked)}
        />
      </>
    );
  }
  if (field.type === 'IMGS') {
    return number('max_items', text.maxItems, 1);
  }
  if (family === 'select' || family === 'multiselect') {
    return <Options field={field} set={set} />;
  }
  return null;
}

function Options({ field, set }: SettingProps) {
  const [typed, setTyped] = useState(() => writeOptions(field.options));

  return (
    <Field label={text.options} help={text.optionsHelp}>
      {(attributes) => (
        <TextArea
          {...attributes}
          rows={4}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            set('options', readOptions(event.target.value, field.options));
          }}
        />
      )}
    </Field>
  );
}

/** DefaultField is the value that the field has at first; files have none. */
function DefaultField({ field, set }: SettingProps) {
  const { family } = kindOfType(field.type);
  if (family === 'file' || family === 'seed' || family === 'none') {
    return null;
  }
  const leaf = { ...leafOfField(field), label: text.default, required: false, defaultValue: null };

  return (
    <FieldInput
      field={{ ...leaf, display: { ...leaf.display, help: undefined } }}
      value={(field.default ?? undefined) as Value}
      problem={undefined}
      uploads={noUploads}
      onChange={(next) => {
        const value = typeof next === 'function' ? next((field.default ?? undefined) as Value) : next;
        set('default', isEmpty(value) ? undefined : value);
      }}
    />
  );
}
