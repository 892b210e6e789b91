import { useCallback, useMemo, useRef, useState } from 'react';
import { beginHistory, type History, record, redo, undo } from './history';
import type { FlowDraft } from './model';

/** Edits are the draft in the editor and its changes, which can be taken back. */
export type Edits = {
  draft: FlowDraft;
  change: (next: (draft: FlowDraft) => FlowDraft, mark?: string) => void;
  undo: () => void;
  redo: () => void;
  canUndo: boolean;
  canRedo: boolean;
};

/** useEdits keeps the draft. Changes are computed at once, while the event that caused them still holds its values. */
export function useEdits(first: FlowDraft): Edits {
  const [history, setHistory] = useState<History<FlowDraft>>(() => beginHistory(first));
  const latest = useRef(history);

  const put = useCallback((next: History<FlowDraft>) => {
    latest.current = next;
    setHistory(next);
  }, []);
  const change = useCallback<Edits['change']>(
    (next, mark) => put(record(latest.current, next(latest.current.present), mark)),
    [put],
  );

  return useMemo(
    () => ({
      draft: history.present,
      change,
      undo: () => put(undo(latest.current)),
      redo: () => put(redo(latest.current)),
      canUndo: history.past.length > 0,
      canRedo: history.future.length > 0,
    }),
    [history, change, put],
  );
}
