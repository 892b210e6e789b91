import { text } from '../text/form';
import { Field, NumberInput, Slider, Switch, TextArea, TextInput } from '../ui/Field';
import { ChoiceField } from './ChoiceField';
import type { Leaf, Value } from './fields';
import { HtmlNote } from './HtmlNote';
import { MediaField } from './MediaField';
import { SeedField } from './SeedField';
import { SizeField } from './SizeField';
import type { Uploads } from './uploads';

export type FieldProps = {
  field: Leaf;
  value: Value;
  problem: string | undefined;
  onChange: (value: Value | ((before: Value) => Value)) => void;
};

/** FieldInput is the input for one field of a tool, by the field's type. */
export function FieldInput({ uploads, ...props }: FieldProps & { uploads: Uploads }) {
  const { field } = props;

  switch (field.type) {
    case 'HEADER':
      return <h3>{field.label}</h3>;
    case 'HTML':
      return <HtmlNote content={field.content ?? field.display.content ?? field.label} />;
    case 'TEXT':
    case 'TEXT_AREA':
    case 'PROMPT':
    case 'NEG_PROMPT':
      return <TextField {...props} />;
    case 'SLIDER':
    case 'UPSCALE_FACTOR_SLIDER':
    case 'CFG':
    case 'STEPS':
    case 'NUM':
      return <NumberField {...props} />;
    case 'SEED':
      return <SeedField {...props} />;
    case 'BOOLEAN':
      return (
        <Switch
          label={field.label}
          help={props.problem ?? field.display.help}
          data-field={field.fieldKey}
          checked={props.value === true}
          onChange={(event) => props.onChange(event.target.checked)}
        />
      );
    case 'SINGLE_SELECT':
    case 'MODEL_SINGLE_SELECT':
    case 'MULTI_SELECT':
      return <ChoiceField {...props} />;
    case 'WIDTH_HEIGHT':
      return <SizeField {...props} />;
    case 'IMG':
    case 'IMGS':
    case 'VIDEO':
    case 'AUDIO':
    case 'ASSET_3D':
      return <MediaField {...props} uploads={uploads} />;
  }
}

function TextField({ field, value, problem, onChange }: FieldProps) {
  const { help, placeholder, max_length: limit } = field.display;
  const content = typeof value === 'string' ? value : '';
  const length = [...content].length;
  const note = limit && (field.type === 'PROMPT' || length > limit * 0.8) ? text.count(length, limit) : undefined;

  return (
    <Field label={field.label} note={note} help={help} problem={problem}>
      {(attributes) => {
        const common = {
          ...attributes,
          value: content,
          placeholder,
          'aria-required': field.required || undefined,
          'data-field': field.fieldKey,
          onChange: (event: { target: { value: string } }) => onChange(event.target.value),
        };
        if (field.type === 'TEXT') {
          return <TextInput {...common} />;
        }
        return <TextArea {...common} rows={field.type === 'NEG_PROMPT' ? 2 : 4} />;
      }}
    </Field>
  );
}

function NumberField({ field, value, problem, onChange }: FieldProps) {
  const { min, max, step, integer, help } = field.display;
  const number = typeof value === 'number' ? value : undefined;
  const stride = step ?? (integer ? 1 : 'any');

  return (
    <Field label={field.label} help={help} problem={problem}>
      {(attributes) =>
        field.type !== 'NUM' && min !== undefined && max !== undefined ? (
          <Slider
            {...attributes}
            label={field.label}
            value={number}
            min={min}
            max={max}
            step={stride}
            onChange={onChange}
          />
        ) : (
          <NumberInput {...attributes} value={number} min={min} max={max} step={stride} onChange={onChange} />
        )
      }
    </Field>
  );
}
