import { type QueryClient, queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { useLocation } from 'wouter';
import { api, dataOf, type Schemas } from '../api/client';
import { text } from '../text/flows';
import { useToast } from '../ui/Toast';
import { useAccount } from './account';
import { messageOf } from './ErrorFault';

export type Flow = Schemas['Flow'];
export type FlowSummary = Schemas['FlowSummary'];

/** flowsKey is the place of an account's saved flows in the cache. */
export const flowsKey = (teamId: string | undefined) => ['flows', teamId];

/** useFlows reads the saved flows of the account, and those that are shared with it. */
export function useFlows(teamId: string | undefined) {
  return useQuery({
    queryKey: flowsKey(teamId),
    queryFn: async () => dataOf(await api.GET('/flows', { params: { query: { team_id: teamId } } })).data,
  });
}

/** flowQuery is the question for one saved flow with its steps. */
export function flowQuery(flowId: string, teamId: string | undefined) {
  return queryOptions({
    queryKey: ['flow', flowId, teamId],
    staleTime: 0,
    queryFn: async () =>
      dataOf(await api.GET('/flows/{flow_id}', { params: { path: { flow_id: flowId }, query: { team_id: teamId } } })),
  });
}

/** rereadFlows reads anew what a change of a flow changes: the lists of flows and tools, and the tool itself. */
export async function rereadFlows(cache: QueryClient, flowId?: string): Promise<void> {
  await Promise.all([
    cache.invalidateQueries({ queryKey: ['flows'] }),
    cache.invalidateQueries({ queryKey: ['tools'] }),
    ...(flowId ? [cache.invalidateQueries({ queryKey: ['tool', flowId] })] : []),
  ]);
}

const handedKey = 'atelier-flow-draft';

/** takeHandedDraft returns the draft that another page has left for the editor; it stays for a reload of the page. */
export function takeHandedDraft(): Schemas['FlowDraft'] | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(handedKey) ?? '') as Schemas['FlowDraft'];
  } catch {
    return undefined;
  }
}

/** forgetHandedDraft ends the life of a draft that was saved or is not wanted. */
export function forgetHandedDraft(): void {
  sessionStorage.removeItem(handedKey);
}

/** useSaveAsFlow returns a function that opens the editor with a flow made from the history of a result. */
export function useSaveAsFlow(): { saveAsFlow: (libraryId: string) => void; drafting: boolean } {
  const { teamId, linkTo } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const [, navigate] = useLocation();
  const [drafting, setDrafting] = useState(false);

  const saveAsFlow = useCallback(
    async (libraryId: string) => {
      setDrafting(true);
      try {
        const params = { query: { team_id: teamId } };
        const draft = dataOf(await api.POST('/flows/draft', { params, body: { library_id: libraryId } }));
        sessionStorage.setItem(handedKey, JSON.stringify(draft));
        void cache.invalidateQueries({ queryKey: ['tools'] });
        navigate(linkTo('/flows/new', { from: libraryId }));
      } catch (error) {
        toast({ text: text.draftFailed(messageOf(error)) });
      }
      setDrafting(false);
    },
    [teamId, linkTo, cache, toast, navigate],
  );

  return { saveAsFlow: (libraryId) => void saveAsFlow(libraryId), drafting };
}
