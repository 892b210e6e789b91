import { text } from '../text/form';
import {
  allowsOwnSize,
  isEmpty,
  isMedia,
  isOffered,
  isSize,
  type Leaf,
  leavesOf,
  type Node,
  optionsOf,
  type Problem,
  type Size,
  sameValue,
  type Value,
  type Values,
  valueIn,
} from './fields';

/** checkField returns what the form can tell about a value before the service does; the service decides. */
export function checkField(field: Leaf, value: Value): Problem | undefined {
  if (isEmpty(value)) {
    return field.required ? { kind: 'missing', message: text.needed(field.label) } : undefined;
  }
  const message = findFault(field, value);

  return message ? { kind: 'wrong', message } : undefined;
}

function findFault(field: Leaf, value: Value): string | undefined {
  const { min, max, integer, max_length: maxLength, max_items: maxItems } = field.display;
  if (typeof value === 'string') {
    return maxLength && [...value].length > maxLength ? text.tooLong(maxLength) : undefined;
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) {
      return text.noNumber;
    }
    if (integer && !Number.isInteger(value)) {
      return text.noWhole;
    }
    return outOfRange(value, min, max) ? text.outOfRange(min, max) : undefined;
  }
  if (isSize(value)) {
    return findSizeFault(field, value);
  }
  if (Array.isArray(value) && maxItems && value.length > maxItems) {
    return text.tooMany(maxItems);
  }
  return undefined;
}

function findSizeFault(field: Leaf, size: Size): string | undefined {
  const { min, max, multiple_of: multipleOf } = field.display;
  if (isOffered(field, size)) {
    return undefined;
  }
  const sides = [size.width, size.height];
  if (sides.some((side) => !Number.isInteger(side) || side < 1)) {
    return text.noPixels;
  }
  if (sides.some((side) => outOfRange(side, min, max))) {
    return text.outOfPixels(min, max);
  }
  if (multipleOf && sides.some((side) => side % multipleOf !== 0)) {
    return text.noMultiple(multipleOf);
  }
  return undefined;
}

function outOfRange(value: number, min: number | undefined, max: number | undefined): boolean {
  return (min !== undefined && value < min) || (max !== undefined && value > max);
}

/** checkForm returns the problem of each field that has one, by `fieldKey`. */
export function checkForm(nodes: readonly Node[], values: Values): Record<string, Problem> {
  const problems: Record<string, Problem> = {};
  for (const field of leavesOf(nodes)) {
    const problem = checkField(field, valueIn(field, values));
    if (problem) {
      problems[field.fieldKey] = problem;
    }
  }

  return problems;
}

/** fits reports whether a value from elsewhere, such as an older form, can be put into a field. */
export function fits(field: Leaf, value: unknown): boolean {
  switch (field.type) {
    case 'PROMPT':
    case 'NEG_PROMPT':
    case 'TEXT':
    case 'TEXT_AREA':
      return typeof value === 'string' && checkField(field, value)?.kind !== 'wrong';
    case 'SLIDER':
    case 'UPSCALE_FACTOR_SLIDER':
    case 'CFG':
    case 'STEPS':
    case 'NUM':
    case 'SEED':
      return typeof value === 'number' && checkField(field, value)?.kind !== 'wrong';
    case 'BOOLEAN':
      return typeof value === 'boolean';
    case 'SINGLE_SELECT':
    case 'MODEL_SINGLE_SELECT':
      return optionsOf(field).options.some((option) => option.value === value);
    case 'MULTI_SELECT':
      return Array.isArray(value) && value.every((one) => optionsOf(field).options.some((o) => o.value === one));
    case 'WIDTH_HEIGHT':
      return isSize(value) && (isOffered(field, value) || (allowsOwnSize(field) && !findSizeFault(field, value)));
    case 'IMGS':
      return Array.isArray(value) && value.every(isMedia) && checkField(field, value as Value)?.kind !== 'wrong';
    case 'IMG':
    case 'VIDEO':
    case 'AUDIO':
    case 'ASSET_3D':
      return isMedia(value);
    default:
      return false;
  }
}

/** CarriedOver is what of older values fits into a form, and the keys of what does not. */
export type CarriedOver = { values: Values; dropped: string[] };

/** carryOver puts values of an older form or the inputs of a run into a form; what equals a default is left out. */
export function carryOver(nodes: readonly Node[], older: Record<string, unknown>): CarriedOver {
  const fields = new Map(leavesOf(nodes).map((field) => [field.fieldKey, field]));
  const values: Values = {};
  const dropped: string[] = [];

  for (const [key, value] of Object.entries(older)) {
    const field = fields.get(key);
    if (isEmpty(value as Value)) {
      continue;
    }
    if (!field || !fits(field, value)) {
      dropped.push(key);
    } else if (!sameValue(value, field.defaultValue)) {
      values[key] = value as Value;
    }
  }

  return { values, dropped };
}
