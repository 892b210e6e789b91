import type { ToolDetail } from '../data/catalog';
import { leavesOf } from '../form/fields';
import { kindOfOutput, kindOfType } from './kinds';
import {
  type FlowDraft,
  type FlowField,
  leavesOfFlow,
  needsOf,
  readSource,
  resultsOf,
  type Source,
  type Step,
} from './model';

// Changes of a flow. Each returns a new draft and leaves all that it does not change as it was.

/** freeName returns a name that is not taken yet: the wanted one, or with a number behind it. */
export function freeName(wanted: string, taken: readonly string[]): string {
  const base = wanted.slice(0, 28);
  let name = base;
  for (let number = 2; taken.includes(name); number += 1) {
    name = `${base}_${number}`;
  }

  return name;
}

/** nameFrom makes the id of a step or the key of a field from words. */
export function nameFrom(words: string, fallback: string): string {
  const name = words
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+|_+$/g, '')
    .slice(0, 28);

  return name || fallback;
}

/** changeStep replaces a step. */
export function changeStep(draft: FlowDraft, id: string, change: (step: Step) => Step): FlowDraft {
  return { ...draft, steps: draft.steps.map((step) => (step.id === id ? change(step) : step)) };
}

/** setPart sets a part of a step such as `max`, or takes it away. */
export function setPart(step: Step, key: string, value: unknown): Step {
  const { [key]: _, ...others } = step;

  return (value === undefined ? others : { ...others, [key]: value }) as Step;
}

/** setInput sets the source of an input, or takes it away. */
export function setInput(draft: FlowDraft, id: string, key: string, source: Source | undefined): FlowDraft {
  return changeStep(draft, id, (step) => {
    const { [key]: _, ...others } = step.inputs ?? {};
    return { ...step, inputs: source === undefined ? others : { ...(step.inputs ?? {}), [key]: source } };
  });
}

/**
 * addStep adds a run of a tool at the end. Where the results of the flow were those of the last step, they are those of the
 * new one from now on.
 */
export function addStep(draft: FlowDraft, tool: Pick<ToolDetail, 'slug' | 'name'>): { draft: FlowDraft; id: string } {
  const wanted = nameFrom(tool.slug.startsWith('flow-') ? tool.name : tool.slug, 'step');
  const id = freeName(
    wanted,
    draft.steps.map((step) => step.id),
  );

  const [result, ...more] = draft.results;
  const atEnd = more.length === 0 && result === draft.steps.at(-1)?.id;

  return {
    id,
    draft: {
      ...draft,
      steps: [...draft.steps, { id, tool: tool.slug, inputs: {} }],
      results: atEnd ? [] : draft.results,
    },
  };
}

/** removeStep takes a step away, and with it every use of its results. */
export function removeStep(draft: FlowDraft, id: string): FlowDraft {
  const names = (leaf: Source) => {
    const read = readSource(leaf);
    return read.kind === 'step' && read.step === id;
  };

  return {
    ...draft,
    steps: draft.steps.filter((step) => step.id !== id).map((step) => dropSources(step, names)),
    results: draft.results.filter((one) => one !== id),
  };
}

/** renameStep gives a step another id, everywhere. */
export function renameStep(draft: FlowDraft, from: string, to: string): FlowDraft {
  const rename = (source: Source) => {
    const read = readSource(source);
    return read.kind === 'step' && read.step === from ? { ...(source as object), step: to } : source;
  };

  return {
    ...draft,
    steps: draft.steps.map((step) => mapSources(step.id === from ? { ...step, id: to } : step, rename)),
    results: draft.results.map((one) => (one === from ? to : one)),
  };
}

/** moveStep moves a step one place earlier or later; the last step gives the results where none is named. */
export function moveStep(draft: FlowDraft, id: string, by: -1 | 1): FlowDraft {
  return { ...draft, steps: moved(draft.steps, (step) => step.id === id, by) };
}

/** setResult says whether the results of a step are results of the flow. */
export function setResult(draft: FlowDraft, id: string, on: boolean): FlowDraft {
  const others = resultsOf(draft).filter((one) => one !== id);

  return { ...draft, results: on ? [...others, id] : others };
}

/** addField adds a field to the end of the flow's form, with a key that is free. */
export function addField(draft: FlowDraft, field: FlowField): { draft: FlowDraft; key: string } {
  const taken = leavesOfFlow(draft.fields).map((one) => one.key ?? '');
  const key = freeName(field.key ?? 'field', taken);

  return { key, draft: { ...draft, fields: [...draft.fields, { ...field, key }] } };
}

/** changeField replaces a field, also one in a group. */
export function changeField(draft: FlowDraft, key: string, change: (field: FlowField) => FlowField): FlowDraft {
  const apply = (fields: FlowField[]): FlowField[] =>
    fields.map((field) => {
      if (Array.isArray(field.fields)) {
        return { ...field, fields: apply(field.fields) };
      }
      return field.key === key ? change(field) : field;
    });

  return { ...draft, fields: apply(draft.fields) };
}

/** removeField takes a field away, and with it every use of it. */
export function removeField(draft: FlowDraft, key: string): FlowDraft {
  const names = (leaf: Source) => {
    const read = readSource(leaf);
    return read.kind === 'field' && read.field === key;
  };
  const without = (fields: FlowField[]): FlowField[] =>
    fields.flatMap((field) => {
      if (Array.isArray(field.fields)) {
        const kept = without(field.fields);
        return kept.length > 0 ? [{ ...field, fields: kept }] : [];
      }
      return field.key === key ? [] : [field];
    });

  return {
    ...draft,
    fields: without(draft.fields),
    steps: draft.steps.map((step) => {
      const kept = dropSources(step, names);
      return kept.when?.field === key ? setPart(kept, 'when', undefined) : kept;
    }),
  };
}

/** renameField gives a field another key, everywhere. */
export function renameField(draft: FlowDraft, from: string, to: string): FlowDraft {
  const rename = (source: Source) => {
    const read = readSource(source);
    return read.kind === 'field' && read.field === from ? { ...(source as object), field: to } : source;
  };
  const renamed = changeField(draft, from, (field) => ({ ...field, key: to }));

  return {
    ...renamed,
    steps: renamed.steps.map((step) => {
      const next = mapSources(step, rename);
      return next.when?.field === from ? { ...next, when: { ...next.when, field: to } } : next;
    }),
  };
}

/** moveField moves a field one place earlier or later in the form. */
export function moveField(draft: FlowDraft, key: string, by: -1 | 1): FlowDraft {
  return { ...draft, fields: moved(draft.fields, (field) => field.key === key, by) };
}

function moved<T>(list: readonly T[], isOne: (item: T) => boolean, by: -1 | 1): T[] {
  const at = list.findIndex(isOne);
  const item = list[at];
  const other = list[at + by];
  if (item === undefined || other === undefined) {
    return [...list];
  }
  const next = [...list];
  next[at] = other;
  next[at + by] = item;

  return next;
}

/** setForEach lets a step run once per item of a list, and gives the item to the first file that nothing feeds. */
export function setForEach(
  draft: FlowDraft,
  id: string,
  source: Source | undefined,
  tool: ToolDetail | undefined,
): FlowDraft {
  if (source === undefined) {
    const plain = changeStep(draft, id, (step) => setPart(setPart(step, 'for_each', undefined), 'max', undefined));
    return changeStep(plain, id, (step) => dropSources(step, (leaf) => readSource(leaf).kind === 'item'));
  }
  const set = changeStep(draft, id, (step) => ({ ...step, for_each: source, max: step.max ?? 4 }));
  const step = set.steps.find((one) => one.id === id);
  const free = leavesOf(tool?.fields ?? []).find((field) => {
    const { family, many } = kindOfType(field.type);
    return family === 'file' && !many && step?.inputs?.[field.fieldKey] === undefined;
  });

  return free ? setInput(set, id, free.fieldKey, { item: true }) : set;
}

/** connect feeds an input from a field or a step. An input that takes a list gets one source more. */
export function connect(draft: FlowDraft, id: string, key: string, source: Source, many: boolean): FlowDraft {
  const before = draft.steps.find((step) => step.id === id)?.inputs?.[key];
  if (before === undefined || !many) {
    return setInput(draft, id, key, source);
  }
  const read = readSource(before);
  if (read.kind === 'constant') {
    return setInput(draft, id, key, source);
  }
  const options = read.kind === 'all_of' ? read.options : [before];

  return setInput(draft, id, key, { all_of: [...options, source] });
}

/** disconnect takes one source of an input away; `path` is its place among the options. */
export function disconnect(draft: FlowDraft, id: string, key: string, path: readonly number[]): FlowDraft {
  const before = draft.steps.find((step) => step.id === id)?.inputs?.[key];

  return before === undefined ? draft : setInput(draft, id, key, withoutLeaf(before, path));
}

/** withoutLeaf takes an option out of a source. A single option that is left stands for the whole. */
export function withoutLeaf(source: Source, path: readonly number[]): Source | undefined {
  const [first, ...rest] = path;
  const read = readSource(source);
  if (first === undefined || (read.kind !== 'first_of' && read.kind !== 'all_of')) {
    return undefined;
  }
  const options = read.options.flatMap((option, at) => {
    const kept = at === first ? withoutLeaf(option, rest) : option;
    return kept === undefined ? [] : [kept];
  });

  return options.length > 1 ? { [read.kind]: options } : options[0];
}

/** wouldCircle reports whether a step would need its own results if it used those of another. */
export function wouldCircle(steps: readonly Step[], from: string, to: string): boolean {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const seen = new Set<string>();
  const reaches = (id: string): boolean => {
    if (id === to) {
      return true;
    }
    const step = byId.get(id);
    if (!step || seen.has(id)) {
      return false;
    }
    seen.add(id);
    return needsOf(step).some(reaches);
  };

  return reaches(from);
}

/** resultSource is the source for results of a step: all for a list, otherwise the first. */
export function resultSource(step: string, many: boolean): Source {
  return many ? { step, result: 'all' } : { step };
}

/** givesList reports whether a step can have more than one result. */
export function givesList(step: Step, tool: ToolDetail | undefined): boolean {
  return kindOfOutput(
    tool?.output.type ?? 'IMG',
    step.for_each !== undefined || (step.num_results !== undefined && step.num_results !== 1),
  ).many;
}

type Mapped = (leaf: Source) => Source | undefined;

/** mapSources changes every field, step and constant that the sources of a step name. */
function mapSources(step: Step, change: Mapped): Step {
  const next = mapCall(step, change) as Step;
  const { otherwise } = next;
  if (typeof otherwise === 'object' && otherwise !== null) {
    next.otherwise = mapCall(otherwise as Record<string, unknown>, change);
  }
  if (step.for_each !== undefined) {
    const each = mapSource(step.for_each, change);
    return setPart(each === undefined ? setPart(next, 'max', undefined) : next, 'for_each', each);
  }

  return next;
}

function mapCall(call: Record<string, unknown>, change: Mapped): Record<string, unknown> {
  const next = { ...call };
  if (typeof call.inputs === 'object' && call.inputs !== null) {
    const entries = Object.entries(call.inputs).map(([key, source]) => [key, mapSource(source, change)] as const);
    next.inputs = Object.fromEntries(entries.filter(([, source]) => source !== undefined));
  }
  if (call.num_results !== undefined) {
    const count = mapSource(call.num_results, change);
    if (count === undefined) {
      delete next.num_results;
    } else {
      next.num_results = count;
    }
  }

  return next;
}

function mapSource(source: Source, change: Mapped): Source | undefined {
  const read = readSource(source);
  if (read.kind !== 'first_of' && read.kind !== 'all_of') {
    return change(source);
  }
  const options = read.options.map((option) => mapSource(option, change));
  const kept = options.filter((option) => option !== undefined);
  if (kept.length === options.length) {
    return { ...(source as object), [read.kind]: kept };
  }

  return kept.length > 1 ? { [read.kind]: kept } : kept[0];
}

/** dropSources takes the sources away that a test finds. An item that has no list any more goes as well. */
function dropSources(step: Step, isGone: (leaf: Source) => boolean): Step {
  const next = mapSources(step, (leaf) => (isGone(leaf) ? undefined : leaf));
  if (step.for_each !== undefined && next.for_each === undefined) {
    return mapSources(next, (leaf) => (readSource(leaf).kind === 'item' ? undefined : leaf));
  }

  return next;
}
