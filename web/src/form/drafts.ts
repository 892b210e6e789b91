import { useCallback, useEffect, useSyncExternalStore } from 'react';
import type { Value, Values } from './fields';

// What people have put into forms, one draft per tool and account. It is kept in this browser, so that a reload, an
// expired session or a lost connection loses nothing.

/** Draft is what a person has put into the form of a tool. */
export type Draft = {
  values: Values;
  /** The number of results; absent until it was changed. */
  count?: number;
  /** The version of the tool that the values were put in for. */
  hash?: string;
};

const writeDelay = 300;
const maxDrafts = 60;
const prefix = 'atelier-draft ';
const drafts = new Map<string, Draft>();
const waiting = new Map<string, ReturnType<typeof setTimeout>>();
const listeners = new Set<() => void>();

const nameOf = (accountId: string, toolId: string) => `${prefix}${accountId} ${toolId}`;

/** parseDraft reads a stored draft; what is not in the form of a draft counts as none. */
export function parseDraft(stored: string | null): Draft {
  try {
    const draft = JSON.parse(stored ?? '') as Partial<Draft> | null;
    if (typeof draft?.values !== 'object' || draft.values === null) {
      return { values: {} };
    }
    return {
      values: draft.values,
      ...(typeof draft.count === 'number' ? { count: draft.count } : {}),
      ...(typeof draft.hash === 'string' ? { hash: draft.hash } : {}),
    };
  } catch {
    return { values: {} };
  }
}

/** readDraft returns the draft of a tool for an account. */
export function readDraft(accountId: string, toolId: string): Draft {
  const name = nameOf(accountId, toolId);
  let draft = drafts.get(name);
  if (!draft) {
    draft = parseDraft(localStorage.getItem(name));
    drafts.set(name, draft);
  }

  return draft;
}

/** changeDraft changes the draft of a tool for an account; it is stored 300 ms after the last change. */
export function changeDraft(accountId: string, toolId: string, change: (draft: Draft) => Draft): void {
  const name = nameOf(accountId, toolId);
  drafts.set(name, change(readDraft(accountId, toolId)));
  clearTimeout(waiting.get(name));
  waiting.set(
    name,
    setTimeout(() => storeDraft(name), writeDelay),
  );
  for (const listener of listeners) {
    listener();
  }
}

function storeDraft(name: string): void {
  clearTimeout(waiting.get(name));
  waiting.delete(name);
  const draft = drafts.get(name);
  try {
    if (!draft || (Object.keys(draft.values).length === 0 && draft.count === undefined)) {
      localStorage.removeItem(name);
    } else {
      localStorage.setItem(name, JSON.stringify(draft));
    }
  } catch {
    // The browser's storage is full: the oldest drafts give way, and this one is kept while the page is open.
    dropOldDrafts();
  }
}

function dropOldDrafts(): void {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix) && !drafts.has(name));
  for (const name of names.slice(0, Math.max(1, names.length - maxDrafts))) {
    localStorage.removeItem(name);
  }
}

/** flushDrafts stores the drafts that wait to be stored; it is called before the page goes. */
export function flushDrafts(): void {
  for (const name of [...waiting.keys()]) {
    storeDraft(name);
  }
}

globalThis.addEventListener?.('pagehide', flushDrafts);
globalThis.addEventListener?.('storage', (event) => {
  if (event.key?.startsWith(prefix) && !waiting.has(event.key)) {
    drafts.delete(event.key);
    for (const listener of listeners) {
      listener();
    }
  }
});

/** setDraftValue puts one value into the draft of a tool, or one that follows from the value before. */
export function setDraftValue(
  accountId: string,
  toolId: string,
  key: string,
  value: Value | ((before: Value) => Value),
): void {
  changeDraft(accountId, toolId, (draft) => ({
    ...draft,
    values: { ...draft.values, [key]: typeof value === 'function' ? value(draft.values[key]) : value },
  }));
}

/** useDraft returns the draft of a tool for an account, and a function that changes it. */
export function useDraft(accountId: string, toolId: string): [Draft, (change: (draft: Draft) => Draft) => void] {
  const draft = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => readDraft(accountId, toolId),
  );
  const change = useCallback(
    (next: (draft: Draft) => Draft) => changeDraft(accountId, toolId, next),
    [accountId, toolId],
  );
  useEffect(() => flushDrafts, []);

  return [draft, change];
}
