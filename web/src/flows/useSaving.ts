import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { api, dataOf } from '../api/client';
import { ApiError } from '../api/errors';
import { useAccount } from '../data/account';
import { messageOf } from '../data/ErrorFault';
import { type Flow, flowQuery, forgetHandedDraft, rereadFlows } from '../data/flows';
import { text } from '../text/flows';
import { useToast } from '../ui/Toast';
import { draftOf, type FlowDraft, fitName, sameDraft } from './model';
import { bodyOf } from './useCheck';

/** Saving is how the draft is stored: what the service has, and whether the draft is the same. */
export type Saving = {
  /** The flow as the service has it; undefined before the first save. */
  flow: Flow | undefined;
  dirty: boolean;
  /** Whether another team shares the flow, so that it can only be saved as a copy. */
  foreign: boolean;
  busy: boolean;
  /** Whether somebody else has saved the flow since it was read. */
  conflict: boolean;
  closeConflict: () => void;
  /** Saves the draft, and returns the flow; undefined if that failed, which was told. */
  save: () => Promise<Flow | undefined>;
  saveCopy: () => Promise<Flow | undefined>;
  /** Reads the flow as it was saved last. */
  readTheirs: () => Promise<FlowDraft | undefined>;
};

/** useSaving stores the draft of the editor. `onSavedAs` is called before the address changes to that of a new flow. */
export function useSaving(draft: FlowDraft, first: Flow | undefined, onSavedAs: (id: string) => void): Saving {
  const { teamId, linkTo } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const [, navigate] = useLocation();
  const [flow, setFlow] = useState(first);
  const [busy, setBusy] = useState(false);
  const [conflict, setConflict] = useState(false);
  const own = useRef(flow);
  own.current = flow;
  const stored = useMemo(() => flow && draftOf(flow), [flow]);
  const isEmpty = draft.steps.length === 0 && draft.fields.length === 0 && draft.name === '';
  const dirty = useMemo(() => (stored ? !sameDraft(stored, draft) : !isEmpty), [stored, draft, isEmpty]);

  const attempt = useCallback(
    async (send: () => Promise<Flow>): Promise<Flow | undefined> => {
      setBusy(true);
      try {
        const saved = await send();
        const isNew = own.current?.id !== saved.id;
        setFlow(saved);
        void rereadFlows(cache, saved.id);
        if (isNew) {
          forgetHandedDraft();
          onSavedAs(saved.id);
        }
        return saved;
      } catch (error) {
        if (error instanceof ApiError && error.status === 412) {
          setConflict(true);
        } else {
          toast({ text: messageOf(error), seconds: 10 });
        }
        return undefined;
      } finally {
        setBusy(false);
      }
    },
    [cache, toast, onSavedAs],
  );

  const create = useCallback(
    (one: FlowDraft) =>
      attempt(async () =>
        dataOf(await api.POST('/flows', { params: { query: { team_id: teamId } }, body: bodyOf(one) })),
      ),
    [attempt, teamId],
  );
  const save = useCallback(async () => {
    if (!flow) {
      const saved = await create(draft);
      if (saved) {
        navigate(linkTo(`/flows/${saved.id}`), { replace: true });
      }
      return saved;
    }
    const params = { path: { flow_id: flow.id }, query: { team_id: teamId } };
    return attempt(async () =>
      dataOf(await api.PUT('/flows/{flow_id}', { params, body: { ...bodyOf(draft), version: flow.version } })),
    );
  }, [flow, draft, create, attempt, teamId, linkTo, navigate]);

  const saveCopy = useCallback(async () => {
    setConflict(false);
    const saved = await create({ ...draft, name: fitName(draft.name || text.untitled, text.copyOf), shared: false });
    if (saved) {
      toast({ text: text.savedAs(saved.name) });
      navigate(linkTo(`/flows/${saved.id}`));
    }
    return saved;
  }, [draft, create, toast, linkTo, navigate]);

  const readTheirs = useCallback(async () => {
    if (!flow) {
      return undefined;
    }
    setConflict(false);
    try {
      const theirs = await cache.fetchQuery(flowQuery(flow.id, teamId));
      setFlow(theirs);
      return draftOf(theirs);
    } catch (error) {
      toast({ text: messageOf(error) });
      return undefined;
    }
  }, [flow, teamId, cache, toast]);

  const foreign = flow !== undefined && (flow.team_id ?? undefined) !== teamId;

  return { flow, dirty, foreign, busy, conflict, closeConflict: () => setConflict(false), save, saveCopy, readTheirs };
}
