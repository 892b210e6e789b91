import type { Schemas } from '../api/client';

// What a flow is, as the service stores it. Parts that the editor does not know stay as they are.

/** Source says where the value of an input comes from: a mapping, or a constant as it stands. */
export type Source = unknown;

/** FlowField is a field of the flow's form, or a group of fields, as in a manifest. */
export type FlowField = Record<string, unknown> & { key?: string; type?: string; label?: string; fields?: FlowField[] };

/** Step is one run of a tool in a flow. */
export type Step = Record<string, unknown> & {
  id: string;
  tool: string;
  inputs?: Record<string, Source>;
  num_results?: Source;
  for_each?: Source;
  max?: number;
  when?: Condition;
  otherwise?: unknown;
  drop?: boolean;
};

/** Condition is what must be true of a field for a step to run. */
export type Condition = { field: string; is?: unknown; is_not?: unknown; given?: boolean };

/** FlowDraft is a flow in the editor. */
export type FlowDraft = {
  name: string;
  description: string;
  fields: FlowField[];
  steps: Step[];
  results: string[];
  shared: boolean;
};

/** emptyDraft is a flow without anything in it. */
export const emptyDraft: FlowDraft = { name: '', description: '', fields: [], steps: [], results: [], shared: false };

/** longestName and longestDescription are the most characters that the service takes. */
export const longestName = 80;
export const longestDescription = 300;

/** fitName writes something around a name, which is cut if the whole is too long. */
export function fitName(name: string, write: (name: string) => string): string {
  const room = longestName - [...write('')].length;

  return write([...name].slice(0, room).join('').trim());
}

type Stored = Pick<Schemas['FlowDraft'], 'name' | 'description' | 'fields' | 'steps' | 'results'> & {
  shared?: boolean | null;
};

/** draftOf reads a flow, a version of one or a draft of the service into the editor. */
export function draftOf({ name, description, fields, steps, results, shared }: Stored): FlowDraft {
  return {
    name,
    description: description ?? '',
    fields: (fields ?? []) as FlowField[],
    steps: steps as Step[],
    results: results ?? [],
    shared: shared ?? false,
  };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** ReadSource is a source, by its kind. */
export type ReadSource =
  | { kind: 'constant'; value: unknown }
  | { kind: 'field'; field: string }
  | { kind: 'step'; step: string; result: 'first' | 'all' | number }
  | { kind: 'item' }
  | { kind: 'first_of' | 'all_of'; options: Source[] }
  | { kind: 'unknown' };

/** readSource tells the kind of a source. */
export function readSource(source: Source): ReadSource {
  if (!isObject(source)) {
    return { kind: 'constant', value: source };
  }
  if ('value' in source) {
    return { kind: 'constant', value: source.value };
  }
  if (typeof source.field === 'string') {
    return { kind: 'field', field: source.field };
  }
  if (typeof source.step === 'string') {
    const { result } = source;
    return {
      kind: 'step',
      step: source.step,
      result: result === 'all' || typeof result === 'number' ? result : 'first',
    };
  }
  if (source.item === true) {
    return { kind: 'item' };
  }
  for (const kind of ['first_of', 'all_of'] as const) {
    const options = source[kind];
    if (Array.isArray(options)) {
      return { kind, options };
    }
  }
  return { kind: 'unknown' };
}

/** constantSource writes a constant. Objects are wrapped, since a plain one would be read as a source. */
export function constantSource(value: unknown): Source {
  return isObject(value) ? { value } : value;
}

/** leavesOfFlow returns the fields of a flow's form in their order, without groups. */
export function leavesOfFlow(fields: readonly FlowField[]): FlowField[] {
  return fields.flatMap((field) => (Array.isArray(field.fields) ? leavesOfFlow(field.fields) : [field]));
}

/** SourceLeaf is a field or a step that a source names, with its place among the options of the source. */
export type SourceLeaf = { path: number[]; source: Source; read: ReadSource };

/** leavesOfSource returns what a source names, through all its options. */
export function leavesOfSource(source: Source, path: number[] = []): SourceLeaf[] {
  const read = readSource(source);
  if (read.kind === 'first_of' || read.kind === 'all_of') {
    return read.options.flatMap((option, at) => leavesOfSource(option, [...path, at]));
  }
  return [{ path, source, read }];
}

/** sourcesOf returns all sources of a step, also those of the tool that replaces it. */
export function sourcesOf(step: Step): Source[] {
  const { otherwise } = step;
  const other = isObject(otherwise) ? (otherwise as Partial<Step>) : {};

  return [
    ...Object.values(step.inputs ?? {}),
    ...Object.values(other.inputs ?? {}),
    ...[step.num_results, other.num_results, step.for_each].filter((source) => source !== undefined),
  ];
}

/** needsOf returns the ids of the steps whose results a step uses. */
export function needsOf(step: Step): string[] {
  const named = sourcesOf(step)
    .flatMap((source) => leavesOfSource(source))
    .flatMap(({ read }) => (read.kind === 'step' ? [read.step] : []));

  return [...new Set(named)];
}

/** fieldsUsedBy returns the keys of the fields that a step uses. */
export function fieldsUsedBy(step: Step): string[] {
  const named = sourcesOf(step)
    .flatMap((source) => leavesOfSource(source))
    .flatMap(({ read }) => (read.kind === 'field' ? [read.field] : []));

  return [...new Set([...named, ...(step.when ? [step.when.field] : [])])];
}

/** resultsOf returns the ids of the steps whose results are those of the flow: the last step if none is named. */
export function resultsOf(draft: Pick<FlowDraft, 'results' | 'steps'>): string[] {
  const last = draft.steps.at(-1);

  return draft.results.length > 0 || !last ? draft.results : [last.id];
}

/** neededSteps returns the ids of a step and of all steps that it needs. */
export function neededSteps(steps: readonly Step[], id: string): Set<string> {
  const needed = new Set<string>();
  const waiting = [id];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const step = steps.find((one) => one.id === next);
    if (step && !needed.has(next)) {
      needed.add(next);
      waiting.push(...needsOf(step));
    }
  }

  return needed;
}

/** sameDraft reports whether two drafts mean the same, whatever the order of keys in them. */
export function sameDraft(one: FlowDraft, other: FlowDraft): boolean {
  const written = (draft: FlowDraft) =>
    JSON.stringify({ ...draft, name: draft.name.trim(), description: draft.description.trim() }, (_, value: unknown) =>
      isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
    );

  return written(one) === written(other);
}
