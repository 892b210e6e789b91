import type { Schemas } from '../api/client';
import { formId } from './layout';
import type { FlowDraft } from './model';

/** PlacedProblem is a problem with the node and the part of it that it is about. */
export type PlacedProblem = {
  message: string;
  /** The id of the node; undefined for the whole flow. */
  node: string | undefined;
  /** The part of the node, such as `inputs.picture` or, for the form, the key of a field. */
  part: string;
};

/** placeProblem finds the node that a problem is about. */
export function placeProblem(draft: FlowDraft, { path, message }: Schemas['FlowProblem']): PlacedProblem {
  const [list, index, ...rest] = path.split('.');
  const at = Number(index);
  const step = list === 'steps' && index !== undefined ? draft.steps[at] : undefined;
  if (step) {
    // A required input that nothing feeds is reported for all inputs, with its key in the message.
    const [, key] = /^the field (\w+) of \S+ is required$/.exec(message) ?? [];
    const part = rest.join('.');
    return { message, node: step.id, part: part === 'inputs' && key ? `inputs.${key}` : part };
  }
  if (list === 'fields') {
    const field = index === undefined ? undefined : draft.fields[at];
    return { message, node: formId, part: typeof field?.key === 'string' ? field.key : '' };
  }

  return { message, node: undefined, part: path };
}

/** sentenceOf writes a message of the service as a sentence. */
export function sentenceOf(message: string): string {
  const first = message.charAt(0).toUpperCase() + message.slice(1);

  return /[.!?]$/.test(first) ? first : `${first}.`;
}
