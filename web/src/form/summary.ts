import { text } from '../text/form';
import {
  isEmpty,
  isSize,
  type Leaf,
  leavesOf,
  mediaOf,
  type Node,
  optionsOf,
  sameValue,
  type Value,
  type Values,
  valueIn,
} from './fields';

/** wordsOf writes a value as people read it. */
export function wordsOf(field: Leaf, value: Value): string {
  if (isEmpty(value)) {
    return field.type === 'SEED' ? text.random : text.none;
  }
  if (typeof value === 'boolean') {
    return value ? text.on : text.off;
  }
  if (isSize(value)) {
    return text.size(value.width, value.height);
  }
  const files = mediaOf(value);
  if (files.length > 0) {
    return text.files(files.length);
  }
  const name = (one: unknown) =>
    optionsOf(field).options.find((option) => option.value === one)?.text ??
    (typeof one === 'number' && field.type !== 'SEED' ? one.toLocaleString() : String(one));

  return Array.isArray(value) ? value.map(name).join(', ') : name(value);
}

/** changedFields returns the fields among these whose values differ from the defaults. */
export function changedFields(nodes: readonly Node[], values: Values): Leaf[] {
  return leavesOf(nodes).filter((field) => {
    const value = values[field.fieldKey];
    return !isEmpty(value) && !sameValue(value, field.defaultValue);
  });
}

/** summarize says in a line what some fields hold: the changed ones first, and the defaults of the first few if none is. */
export function summarize(nodes: readonly Node[], values: Values): { changed: number; line: string } {
  const changed = changedFields(nodes, values);
  const fields = changed.length > 0 ? changed : leavesOf(nodes);
  const parts = fields
    .slice(0, 4)
    .map((field) => text.summaryPart(field.label, wordsOf(field, valueIn(field, values))));
  if (fields.length > parts.length) {
    parts.push(text.andMore(fields.length - parts.length));
  }

  return { changed: changed.length, line: parts.join(', ') };
}
