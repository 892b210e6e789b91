import type { ToolDetail } from '../data/catalog';
import type { BoardNode } from './model';

type Field = Extract<ToolDetail['fields'][number], { isField: true }>;
type Inputs = Record<string, unknown>;

/** InputRef is a result or an upload as an input of a run. */
export type InputRef = { kind: 'LIBRARY_REF' | 'UPLOAD_REF'; id: string; type: string };

const mediaTypes: Record<string, string[]> = {
  IMG: ['IMG', 'IMGS'],
  VID: ['VIDEO'],
  AUDIO: ['AUDIO'],
  ASSET_3D: ['ASSET_3D'],
};

/** fieldsOf lists the fields of a tool without their groups. */
export function fieldsOf(nodes: ToolDetail['fields']): Field[] {
  return nodes.flatMap((node) => (node.isField ? [node] : fieldsOf(node.children)));
}

/** promptField returns the field for what a person types. */
export function promptField(tool: ToolDetail): Field | undefined {
  const fields = fieldsOf(tool.fields);

  return (
    fields.find((field) => field.type === 'PROMPT') ??
    fields.find((field) => field.type === 'TEXT_AREA' && field.required)
  );
}

/** inputRefOf returns a node as an input; texts and runs are none. */
export function inputRefOf(node: BoardNode): InputRef | undefined {
  if ((node.kind === 'LIBRARY_REF' || node.kind === 'UPLOAD_REF') && node.ref && node.item) {
    return { kind: node.kind, id: node.ref, type: node.item.type };
  }
  return undefined;
}

/** takesInputs reports whether a tool has a field for one of the files at least. */
export function takesInputs(tool: ToolDetail, refs: InputRef[]): boolean {
  return (
    refs.length === 0 ||
    fieldsOf(tool.fields).some((field) => refs.some((ref) => mediaTypes[ref.type]?.includes(field.type)))
  );
}

/** composeInputs returns the inputs of a run, or undefined if the tool needs something that a small composer does not ask for. */
export function composeInputs(tool: ToolDetail, prompt: string, refs: InputRef[]): Inputs | undefined {
  const inputs: Inputs = {};
  const left = [...refs];
  const main = promptField(tool);

  for (const field of fieldsOf(tool.fields)) {
    if (field.fieldKey === main?.fieldKey) {
      if (prompt.trim()) {
        inputs[field.fieldKey] = prompt.trim();
      }
      continue;
    }
    const fits = left.filter((ref) => mediaTypes[ref.type]?.includes(field.type));
    if (fits.length > 0) {
      const used = field.type === 'IMGS' ? fits.slice(0, field.display.max_items ?? fits.length) : fits.slice(0, 1);
      const values = used.map(({ kind, id }) => ({ kind, id }));
      inputs[field.fieldKey] = field.type === 'IMGS' ? values : values[0];
      left.splice(0, left.length, ...left.filter((ref) => !used.includes(ref)));
    } else if (field.required && field.defaultValue === null) {
      return undefined;
    }
  }

  return takesInputs(tool, refs) ? inputs : undefined;
}

/** changeSeed returns inputs without their seed, so that the service draws a new one. */
export function changeSeed(inputs: Inputs, tool: ToolDetail): Inputs {
  const seeds = new Set(fieldsOf(tool.fields).flatMap((field) => (field.type === 'SEED' ? [field.fieldKey] : [])));

  return Object.fromEntries(Object.entries(inputs).filter(([key]) => !seeds.has(key)));
}
