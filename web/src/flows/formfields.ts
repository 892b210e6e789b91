import { type Leaf, optionsOf } from '../form/fields';
import type { FlowField } from './model';

/** fieldTypes are the types that a new field of a flow can have. */
export const fieldTypes = [
  'PROMPT',
  'TEXT',
  'TEXT_AREA',
  'NUM',
  'SLIDER',
  'SEED',
  'BOOLEAN',
  'SINGLE_SELECT',
  'WIDTH_HEIGHT',
  'IMG',
  'IMGS',
  'VIDEO',
  'AUDIO',
] as const;

// What else a field of a type needs before the service accepts it.
const firstSettings: Record<string, Record<string, unknown>> = {
  PROMPT: { max_length: 1000 },
  TEXT: { max_length: 300 },
  TEXT_AREA: { max_length: 1000 },
  SLIDER: { min: 0, max: 10, step: 1 },
  SINGLE_SELECT: { options: [{ text: 'One', value: 'one' }] },
  WIDTH_HEIGHT: { sizes: [{ text: 'Square', width: 1024, height: 1024 }] },
  IMGS: { max_items: 8 },
};

/** newField is a field of a type with the settings that it needs. */
export function newField(type: string, key: string, label: string): FlowField {
  return { key, type, label, ...firstSettings[type] };
}

const keptByAll = ['key', 'label', 'required', 'help', 'advanced'];

/** changeType gives a field another type; settings that belong to the old one go. */
export function changeType(field: FlowField, type: string): FlowField {
  const kept = Object.fromEntries(Object.entries(field).filter(([key]) => keptByAll.includes(key)));

  return { ...kept, type, ...firstSettings[type] };
}

/** fieldOfLeaf writes a field of a tool as a field of a flow with the same limits, so that all its values fit. */
export function fieldOfLeaf(leaf: Leaf): FlowField {
  const { display } = leaf;
  const field: FlowField = { key: leaf.fieldKey, type: leaf.type, label: leaf.label };
  const put = (key: string, value: unknown) => {
    if (value !== undefined && value !== null && value !== '' && value !== false) {
      field[key] = value;
    }
  };
  put('required', leaf.required);
  put('help', display.help);
  put('placeholder', display.placeholder);
  put('advanced', display.advanced);
  put('max_length', display.max_length);
  put('min', display.min);
  put('max', display.max);
  put('step', display.step);
  put('integer', display.integer);
  put('multiple_of', display.multiple_of);
  put('max_items', display.max_items);
  put('accept', display.accept);
  put('sizes', display.select?.options);
  const { options, layout } = optionsOf(leaf);
  if (options.length > 0) {
    put(
      'options',
      options.map((option) => ({ text: option.text, value: option.value })),
    );
    put('show_as', layout === 'radio' ? 'radio' : undefined);
  }
  put('default', leaf.defaultValue);

  return field;
}

/** leafOfField shows a field of a flow as a field of a form. */
export function leafOfField(field: FlowField): Leaf {
  const options = Array.isArray(field.options) ? field.options : [];
  const display = {
    help: field.help,
    placeholder: field.placeholder,
    max_length: field.max_length,
    min: field.min,
    max: field.max,
    step: field.step,
    integer: field.integer,
    multiple_of: field.multiple_of,
    max_items: field.max_items,
    accept: field.accept,
    ...(field.show_as === 'radio' ? { radio: { options } } : { text: { options } }),
    ...(Array.isArray(field.sizes) ? { select: { options: field.sizes } } : {}),
  };

  return {
    uuid: field.key ?? '',
    isField: true,
    fieldKey: field.key ?? '',
    type: (field.type ?? 'TEXT') as Leaf['type'],
    label: field.label ?? field.key ?? '',
    required: field.required === true,
    defaultValue: (field.default ?? null) as Leaf['defaultValue'],
    display: display as Leaf['display'],
  };
}

// Settings that the panel has inputs for; all others are shown as they are written.
const edited = [
  'key',
  'type',
  'label',
  'required',
  'default',
  'help',
  'max_length',
  'min',
  'max',
  'step',
  'integer',
  'options',
  'max_items',
];

/** otherSettings returns the settings of a field that the panel cannot change. */
export function otherSettings(field: FlowField): Record<string, unknown> | undefined {
  const others = Object.entries(field).filter(([key]) => !edited.includes(key));

  return others.length > 0 ? Object.fromEntries(others) : undefined;
}

/** writeOptions writes options one in a line, as `value: text` where both differ. */
export function writeOptions(options: unknown): string {
  const list = Array.isArray(options) ? (options as Array<{ text?: unknown; value?: unknown }>) : [];

  return list
    .map(({ text, value }) => (text === value ? String(value) : `${String(value)}: ${String(text)}`))
    .join('\n');
}

/** readOptions reads options from lines; numbers that were numbers stay numbers. */
export function readOptions(lines: string, before: unknown): Array<{ text: string; value: unknown }> {
  const known = Array.isArray(before) ? (before as Array<{ value?: unknown }>) : [];
  const numeric = known.length > 0 && known.every((option) => typeof option.value === 'number');

  return lines
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .map((line) => {
      const [value = '', ...rest] = line.split(':');
      const words = rest.join(':').trim();
      const key = value.trim();
      return { text: words || key, value: numeric && key !== '' && !Number.isNaN(Number(key)) ? Number(key) : key };
    });
}
