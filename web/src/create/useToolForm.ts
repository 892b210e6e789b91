import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { ApiError } from '../api/errors';
import { useAccount } from '../data/account';
import type { ToolDetail } from '../data/catalog';
import { carryOver, checkForm } from '../form/check';
import { setDraftValue, useDraft } from '../form/drafts';
import { inputsOf, leavesOf, type Value, type Values } from '../form/fields';
import { addMedia } from '../form/mediafields';
import { type Uploads, useUploads } from '../form/uploads';
import { text } from '../text/create';
import { useToast } from '../ui/Toast';
import { usePrice } from './price';
import { useStart } from './start';

/** ToolFormState is the state of the form of a tool: what is in it, what it would cost, and why it cannot run. */
export type ToolFormState = {
  tool: ToolDetail;
  values: Values;
  setValue: (key: string, value: Value | ((before: Value) => Value)) => void;
  count: number;
  setCount: (count: number) => void;
  /** What is wrong with a field, by `fieldKey`. */
  problems: Record<string, string>;
  uploads: Uploads;
  price: ReturnType<typeof usePrice>;
  starting: boolean;
  /** Seconds until the service takes runs again; 0 if it does. */
  wait: number;
  /** The refusal of the last attempt, unless it is shown at fields or as a wait. */
  fault: unknown;
  /** What a change of the tool did to the draft. */
  notice: string | undefined;
  dismissNotice: () => void;
  create: () => void;
  startOver: () => void;
};

/** useToolForm keeps the form of a tool for the account that is acted for. */
export function useToolForm(tool: ToolDetail): ToolFormState {
  const { account, teamId } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const start = useStart();
  const [draft, changeDraft] = useDraft(account.id, tool.id);
  const { values } = draft;
  const count = countIn(tool, draft.count);
  const [asked, setAsked] = useState(false);
  const [refused, setRefused] = useState<Record<string, string>>({});
  const [fault, setFault] = useState<unknown>();
  const [starting, setStarting] = useState(false);
  const [notice, setNotice] = useState<string>();
  const [wait, setWait] = useCountdown();

  const setValue = useCallback(
    (key: string, value: Value | ((before: Value) => Value)) => {
      setDraftValue(account.id, tool.id, key, value);
      changeDraft((before) => ({ ...before, hash: tool.tool_fields_hash }));
      setRefused(({ [key]: _, ...others }) => others);
      setFault(undefined);
    },
    [account.id, tool, changeDraft],
  );
  const uploads = useUploads(teamId, (field, file) =>
    setValue(field.fieldKey, (before) => addMedia(field, before, file)),
  );

  const inputs = useMemo(() => inputsOf(tool.fields, values), [tool, values]);
  const price = usePrice({ tool, inputs, count });
  const problems = useMemo(
    () => ({ ...shownProblems(tool, values, asked), ...problemsOf(price.error), ...refused }),
    [tool, values, asked, price.error, refused],
  );

  useCarryOver(tool, setNotice);
  useEffect(() => {
    if (isStale(price.error)) {
      void cache.invalidateQueries({ queryKey: ['tool', tool.id] });
    }
  }, [price.error, cache, tool.id]);

  const create = async () => {
    if (starting || wait > 0) {
      return;
    }
    setAsked(true);
    setFault(undefined);
    const found = Object.keys(checkForm(tool.fields, values));
    if (found.length > 0) {
      focusField(found[0]);
      return;
    }
    if (uploads.sending.length > 0) {
      return;
    }

    setStarting(true);
    try {
      const { replayed } = await start({ tool, inputs, count, tokens: price.data?.total_tokens });
      setAsked(false);
      setNotice(undefined);
      if (replayed) {
        toast({ text: text.alreadyStarted });
      }
    } catch (error) {
      showRefusal(error);
    } finally {
      setStarting(false);
    }
  };

  const showRefusal = (error: unknown) => {
    const fields = problemsOf(error);
    const [first] = Object.keys(fields);
    if (isStale(error)) {
      void cache.invalidateQueries({ queryKey: ['tool', tool.id] });
      setNotice(`${text.changedTool(tool.name)} ${text.carriedOver}`);
    } else if (error instanceof ApiError && error.status === 429) {
      setWait(error.retryAfter ?? 10);
      setFault(error);
    } else if (first) {
      setRefused(fields);
      focusField(first);
    } else {
      setFault(error);
    }
  };

  return {
    tool,
    values,
    setValue,
    count,
    setCount: (next) => changeDraft((before) => ({ ...before, count: next })),
    problems,
    uploads,
    price,
    starting,
    wait,
    fault,
    notice,
    dismissNotice: () => setNotice(undefined),
    create: () => void create(),
    startOver: () => {
      changeDraft(() => ({ values: {} }));
      setAsked(false);
      setRefused({});
      toast({
        text: text.startedOver,
        action: { label: text.undo, key: 'Z', run: () => changeDraft(() => draft) },
      });
    },
  };
}

/** countIn keeps a number of results within what the tool makes at a time. */
export function countIn(tool: Pick<ToolDetail, 'num_results'>, count: number | undefined): number {
  const limits = tool.num_results;
  if (!limits) {
    return 1;
  }
  return Math.min(limits.max, Math.max(limits.min, count ?? limits.default));
}

/** shownProblems leaves out fields that are merely empty until the person has tried to create. */
function shownProblems(tool: ToolDetail, values: Values, asked: boolean): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const [key, problem] of Object.entries(checkForm(tool.fields, values))) {
    if (asked || problem.kind === 'wrong') {
      shown[key] = problem.message;
    }
  }

  return shown;
}

/** problemsOf reads the fields that the service has refused, by `fieldKey`. */
export function problemsOf(error: unknown): Record<string, string> {
  if (!(error instanceof ApiError)) {
    return {};
  }
  const problems: Record<string, string> = {};
  for (const { path, message } of error.fields) {
    const key = /^inputs\.([^.[]+)/.exec(path)?.[1];
    if (key) {
      problems[key] = message;
    }
  }

  return problems;
}

const isStale = (error: unknown) => error instanceof ApiError && error.code === 'TOOL_SCHEMA_STALE';

/** focusField moves the focus to the input of a field, once it is shown. */
function focusField(key: string | undefined): void {
  setTimeout(() => {
    const input = key && document.querySelector<HTMLElement>(`[data-field="${CSS.escape(key)}"]`);
    const target = input || document.querySelector<HTMLElement>('[aria-invalid=true]');
    target?.focus();
    target?.scrollIntoView({ block: 'nearest' });
  }, 50);
}

/** useCarryOver fits a draft for an older version of a tool into the present one, and says what was lost. */
function useCarryOver(tool: ToolDetail, onNotice: (notice: string) => void): void {
  const { account } = useAccount();
  const [draft, changeDraft] = useDraft(account.id, tool.id);
  const labels = useRef(new Map<string, string>());
  const hash = tool.tool_fields_hash;

  useEffect(() => {
    if (draft.hash && draft.hash !== hash && Object.keys(draft.values).length > 0) {
      const { values, dropped } = carryOver(tool.fields, draft.values);
      changeDraft((before) => ({ ...before, values, hash }));
      const names = dropped.map((key) => `“${labels.current.get(key) ?? key}”`).join(', ');
      onNotice(`${text.changedTool(tool.name)} ${dropped.length > 0 ? text.notCarried(names) : text.carriedOver}`);
    }
    for (const field of leavesOf(tool.fields)) {
      labels.current.set(field.fieldKey, field.label);
    }
  }, [draft, tool, hash, changeDraft, onNotice]);
}

/** useCountdown counts seconds down to 0. */
function useCountdown(): [number, (seconds: number) => void] {
  const [end, setEnd] = useState(0);
  const [left, setLeft] = useState(0);

  useEffect(() => {
    const tick = () => setLeft(Math.max(0, Math.ceil((end - Date.now()) / 1000)));
    tick();
    if (end <= Date.now()) {
      return;
    }
    const timer = setInterval(tick, 500);
    return () => clearInterval(timer);
  }, [end]);

  return [left, (seconds) => setEnd(Date.now() + seconds * 1000)];
}
