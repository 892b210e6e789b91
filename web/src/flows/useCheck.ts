import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { text } from '../text/flows';
import type { FlowDraft } from './model';
import { type PlacedProblem, placeProblem } from './problems';

const checkDelay = 400;

/** Check is what the service says about a flow. */
export type Check = {
  problems: PlacedProblem[];
  price: Schemas['FlowPrice'] | null;
  /** Whether the answer is about an older state of the flow, or not there yet. */
  waiting: boolean;
  error: unknown;
};

/** bodyOf writes a draft as the service wants it. */
export function bodyOf(draft: FlowDraft): Schemas['FlowDraft'] {
  return { ...draft, name: draft.name.trim() || text.untitled };
}

/** useCheck lets the service check a flow once it has stood still for a moment. */
export function useCheck(draft: FlowDraft, teamId: string | undefined): Check {
  const [late, setLate] = useState(draft);
  useEffect(() => {
    const timer = setTimeout(() => setLate(draft), checkDelay);
    return () => clearTimeout(timer);
  }, [draft]);

  const check = useQuery({
    queryKey: ['flow-check', teamId, late],
    enabled: late.steps.length > 0,
    placeholderData: keepPreviousData,
    gcTime: 10_000,
    retry: false,
    queryFn: async ({ signal }) => {
      const params = { query: { team_id: teamId } };
      const checked = dataOf(await api.POST('/flows/check', { params, body: bodyOf(late), signal }));
      return { problems: checked.problems.map((one) => placeProblem(late, one)), price: checked.price };
    },
  });

  return useMemo(() => {
    if (draft.steps.length === 0) {
      return { problems: [], price: null, waiting: false, error: null };
    }
    return {
      problems: check.data?.problems ?? [],
      price: check.data?.price ?? null,
      waiting: late !== draft || check.isFetching,
      error: check.error,
    };
  }, [draft, late, check.data, check.isFetching, check.error]);
}
