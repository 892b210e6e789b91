import type { ToolDetail } from '../data/catalog';
import { leavesOf } from '../form/fields';
import { text } from '../text/flows';
import { connect, disconnect, givesList, resultSource, setForEach, wouldCircle } from './edit';
import { type Kind, kindOfOutput, kindOfType, type Refusal, refuseField, refuseResult } from './kinds';
import { formId } from './layout';
import { type FlowDraft, leavesOfFlow, leavesOfSource, readSource, type Step } from './model';

// The graph that the canvas shows. A line goes from a field of the form or from a step to an input of a step.

/** Tools are the tools that the flow names, by slug; undefined while they are read, null for one that is unknown. */
export type Tools = ReadonlyMap<string, ToolDetail | null>;

/** outputHandle is the handle of a step's results. */
export const outputHandle = 'out';

/** eachHandle is the handle of the list for whose items a step runs. */
export const eachHandle = 'each';

/** inputHandle is the handle of an input of a step, or of a field of the form. */
export const inputHandle = (key: string) => `in:${key}`;
export const fieldHandle = (key: string) => `field:${key}`;

/** Row is an input of a step that its node shows. */
export type Row = {
  key: string;
  label: string;
  kind: Kind;
  required: boolean;
  /** Whether nothing feeds it although it is needed. */
  missing: boolean;
  /** What it holds, in words, where no line says so. */
  note: string | undefined;
};

/** rowsOf returns the inputs that the node of a step shows: files, what is required, and what is fed from elsewhere. */
export function rowsOf(step: Step, tool: ToolDetail | null | undefined): Row[] {
  if (!tool) {
    return rowsOfUnknown(step);
  }
  return leavesOf(tool.fields).flatMap((field) => {
    const kind = kindOfType(field.type);
    const source = step.inputs?.[field.fieldKey];
    const read = source === undefined ? undefined : readSource(source);
    const empty = field.defaultValue === null || field.defaultValue === undefined || field.defaultValue === '';
    const required = field.required && empty;
    const fed = read !== undefined && read.kind !== 'constant';
    if (kind.family !== 'file' && field.type !== 'PROMPT' && !required && !fed) {
      return [];
    }
    const missing = required && (read === undefined || (read.kind === 'constant' && read.value === ''));
    const note =
      read?.kind === 'item' ? text.item : read?.kind === 'constant' ? wordsOfConstant(read.value) : undefined;
    return [{ key: field.fieldKey, label: field.label, kind, required, missing, note }];
  });
}

/** rowsOfUnknown keeps the inputs of a tool that is not known, or not read yet, so that lines have an end. */
function rowsOfUnknown(step: Step): Row[] {
  return Object.entries(step.inputs ?? {}).flatMap(([key, source]) =>
    readSource(source).kind === 'constant'
      ? []
      : [{ key, label: key, kind: kindOfType(undefined), required: false, missing: false, note: '' }],
  );
}

function wordsOfConstant(value: unknown): string {
  return typeof value === 'string' ? `“${value}”` : JSON.stringify(value);
}

/** Line is a connection of the graph. */
export type Line = {
  id: string;
  from: string;
  fromHandle: string;
  to: string;
  toHandle: string;
  /** The input that it feeds, and the place of its source among the options; without it the list of `for_each`. */
  input?: { key: string; path: number[] };
};

/** linesOf returns the connections of a flow. */
export function linesOf(draft: FlowDraft): Line[] {
  const ids = new Set(draft.steps.map((step) => step.id));
  const keys = new Set(leavesOfFlow(draft.fields).map((field) => field.key));
  const line = (step: Step, source: unknown, toHandle: string, input?: Line['input']): Line[] => {
    const read = readSource(source);
    const id = `${step.id} ${toHandle} ${input?.path.join('.') ?? ''}`;
    const end = { id, to: step.id, toHandle, input };
    if (read.kind === 'field' && keys.has(read.field)) {
      return [{ ...end, from: formId, fromHandle: fieldHandle(read.field) }];
    }
    if (read.kind === 'step' && ids.has(read.step)) {
      return [{ ...end, from: read.step, fromHandle: outputHandle }];
    }
    return [];
  };

  return draft.steps.flatMap((step) => [
    ...(step.for_each === undefined ? [] : line(step, step.for_each, eachHandle)),
    ...Object.entries(step.inputs ?? {}).flatMap(([key, source]) =>
      leavesOfSource(source).flatMap((leaf) => line(step, leaf.source, inputHandle(key), { key, path: leaf.path })),
    ),
  ]);
}

/** Wire is a connection that somebody draws. */
export type Wire = {
  source: string | null;
  sourceHandle?: string | null;
  target: string | null;
  targetHandle?: string | null;
};

/** refuseWire returns why a connection cannot be made. */
export function refuseWire(draft: FlowDraft, tools: Tools, wire: Wire): Refusal {
  const { source, sourceHandle = '', target, targetHandle = '' } = wire;
  const step = draft.steps.find((one) => one.id === target);
  if (!source || !step || source === target) {
    return text.connectSteps;
  }
  if (source !== formId && wouldCircle(draft.steps, source, step.id)) {
    return text.circle;
  }
  const key = targetHandle?.startsWith('in:') ? targetHandle.slice(3) : undefined;
  const leaf = leavesOf(tools.get(step.tool)?.fields ?? []).find((field) => field.fieldKey === key);
  if (!leaf && targetHandle !== eachHandle) {
    return text.connectSteps;
  }

  if (source === formId) {
    const field = leavesOfFlow(draft.fields).find((one) => fieldHandle(one.key ?? '') === sourceHandle);
    const kind = kindOfType(field?.type);
    if (!leaf) {
      return kind.many ? undefined : text.needsList;
    }
    return refuseField(kind, kindOfType(leaf.type));
  }
  const from = tools.get(draft.steps.find((one) => one.id === source)?.tool ?? '');
  if (!from) {
    return text.toolUnread;
  }
  return leaf ? refuseResult(from.output.type, kindOfType(leaf.type)) : undefined;
}

/** drawWire makes a connection that was not refused. */
export function drawWire(
  draft: FlowDraft,
  tools: Tools,
  { source, sourceHandle, target, targetHandle }: Wire,
): FlowDraft {
  const step = draft.steps.find((one) => one.id === target);
  if (!source || !step) {
    return draft;
  }
  const tool = tools.get(step.tool) ?? undefined;
  const key = targetHandle?.startsWith('in:') ? targetHandle.slice(3) : undefined;
  const leaf = leavesOf(tool?.fields ?? []).find((field) => field.fieldKey === key);
  const many = leaf ? kindOfType(leaf.type).many : false;
  const origin = source === formId ? { field: sourceHandle?.replace(/^field:/, '') ?? '' } : resultSource(source, many);
  if (key === undefined) {
    return setForEach(draft, step.id, source === formId ? origin : { step: source }, tool);
  }

  return connect(draft, step.id, key, origin, many);
}

/** cutLine takes a connection away. */
export function cutLine(draft: FlowDraft, line: Line): FlowDraft {
  return line.input
    ? disconnect(draft, line.to, line.input.key, line.input.path)
    : setForEach(draft, line.to, undefined, undefined);
}

/** outputKind returns the kind of a step's results. */
export function outputKind(step: Step, tool: ToolDetail | null | undefined): Kind | undefined {
  return tool ? kindOfOutput(tool.output.type, givesList(step, tool)) : undefined;
}
