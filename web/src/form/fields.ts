import type { Schemas } from '../api/client';

export type Node = Schemas['FieldNode'];
export type Leaf = Schemas['FieldLeaf'];
export type Group = Schemas['FieldGroup'];
export type Inputs = Schemas['Inputs'];
export type Medium = Schemas['Medium'];
export type Size = { width: number; height: number };

/** MediaValue is a file of a form: a result or an upload, and what is needed to show it. */
export type MediaValue = {
  kind: 'LIBRARY_REF' | 'UPLOAD_REF';
  id: string;
  type?: Medium;
  thumb?: string | null;
  name?: string;
};

/** Value is what a person has put into a field; undefined means that the field has its default. */
export type Value = string | number | boolean | Array<string | number> | Size | MediaValue | MediaValue[] | undefined;

/** Values are the fields that a person has changed, by `fieldKey`; all others have their defaults. */
export type Values = Record<string, Value>;

/** Problem is the reason why a value cannot be used: it is missing, or it is wrong as it stands. */
export type Problem = { kind: 'missing' | 'wrong'; message: string };

const mediaFields: Partial<Record<Leaf['type'], Medium>> = {
  IMG: 'IMG',
  IMGS: 'IMG',
  VIDEO: 'VID',
  AUDIO: 'AUDIO',
  ASSET_3D: 'ASSET_3D',
};

/** leavesOf returns the fields of a form in their order, without groups, headings and notes. */
export function leavesOf(nodes: readonly Node[]): Leaf[] {
  return nodes.flatMap((node) => {
    if (!node.isField) {
      return leavesOf(node.children);
    }
    return node.type === 'HEADER' || node.type === 'HTML' ? [] : [node];
  });
}

/** isAdvanced reports whether a field, or every field of a group, is hidden at first. */
export function isAdvanced(node: Node): boolean {
  if (node.isField) {
    return node.display.advanced === true;
  }
  return node.children.length > 0 && node.children.every(isAdvanced);
}

/** mediumOf returns the kind of file that a field takes; undefined if it takes no file. */
export function mediumOf(field: Leaf): Medium | undefined {
  return mediaFields[field.type];
}

/** takesMany reports whether a field holds a list of files. */
export function takesMany(field: Leaf): boolean {
  return field.type === 'IMGS';
}

/** optionsOf returns the choices of a select, and how they are shown. */
export function optionsOf(field: Leaf): { options: Schemas['Option'][]; layout: 'text' | 'radio' | 'image' } {
  const { text: list, radio, image } = field.display;
  if (image) {
    return { options: image.options, layout: 'image' };
  }
  if (radio) {
    return { options: radio.options, layout: 'radio' };
  }
  return { options: list?.options ?? [], layout: 'text' };
}

/** valueIn returns what a field holds now: what the person has put in, or the default. */
export function valueIn(field: Leaf, values: Values): Value {
  const value = values[field.fieldKey];

  return value === undefined ? ((field.defaultValue ?? undefined) as Value) : value;
}

/** isEmpty reports whether a value counts as none. */
export function isEmpty(value: Value): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** isSize reports whether a value is a size in pixels. */
export function isSize(value: unknown): value is Size {
  const size = value as Partial<Size> | null;

  return typeof size === 'object' && typeof size?.width === 'number' && typeof size.height === 'number';
}

/** isMedia reports whether a value is a file. */
export function isMedia(value: unknown): value is MediaValue {
  const file = value as Partial<MediaValue> | null;

  return (
    typeof file === 'object' &&
    (file?.kind === 'LIBRARY_REF' || file?.kind === 'UPLOAD_REF') &&
    typeof file.id === 'string'
  );
}

/** mediaOf returns the files of a field as a list. */
export function mediaOf(value: Value): MediaValue[] {
  if (Array.isArray(value)) {
    return (value as unknown[]).filter(isMedia);
  }
  return isMedia(value) ? [value] : [];
}

/** isOffered reports whether a size is one of those that the field offers. */
export function isOffered(field: Leaf, size: Size): boolean {
  const options = field.display.select?.options ?? [];

  return options.some((option) => option.width === size.width && option.height === size.height);
}

/** allowsOwnSize reports whether a size field takes sizes beside the ones that it offers. */
export function allowsOwnSize(field: Leaf): boolean {
  return !field.display.select || field.display.min !== undefined || field.display.max !== undefined;
}

/** inputsOf writes the changed fields as the inputs of a run. The service fills in the defaults of all others. */
export function inputsOf(nodes: readonly Node[], values: Values): Inputs {
  const inputs: Inputs = {};
  for (const field of leavesOf(nodes)) {
    const value = values[field.fieldKey];
    if (!isEmpty(value)) {
      inputs[field.fieldKey] = inputOf(value);
    }
  }

  return inputs;
}

function inputOf(value: Value): Schemas['InputValue'] {
  if (Array.isArray(value)) {
    return value.map((one) => (isMedia(one) ? refOf(one) : one)) as Schemas['ListInput'];
  }
  return isMedia(value) ? refOf(value) : (value as Schemas['InputValue']);
}

function refOf({ kind, id }: MediaValue): Schemas['FileInput'] {
  return { kind, id };
}

/** sameValue reports whether two values mean the same to a run. */
export function sameValue(one: unknown, other: unknown): boolean {
  if (isMedia(one) && isMedia(other)) {
    return one.kind === other.kind && one.id === other.id;
  }
  if (isSize(one) && isSize(other)) {
    return one.width === other.width && one.height === other.height;
  }
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => sameValue(item, other[at]));
  }
  return (one ?? undefined) === (other ?? undefined);
}
