import { type InfiniteData, infiniteQueryOptions, type QueryClient, useInfiniteQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';

export type Run = Schemas['Generation'];
type RunPage = Schemas['GenerationList'];
type RunPages = InfiniteData<RunPage, string | undefined>;

/** runsKey is the place of an account's runs in the cache. */
export const runsKey = (teamId: string | undefined) => ['runs', teamId ?? 'personal'];

/** previewKey is the place of the newest unfinished picture of a run in the cache. */
export const previewKey = (requestId: string) => ['preview', requestId];

type RunOptions = {
  /** Reads only runs that ended in this way. */
  status?: Run['status'];
  /** Reads the list again every few seconds while runs are pending; for the time when no events come. */
  poll?: boolean;
  enabled?: boolean;
};

const pollTime = 4000;

/** runsQuery is the question for the account's runs with their inputs, the newest first, a page at a time. */
export function runsQuery(teamId: string | undefined, status?: Run['status']) {
  return infiniteQueryOptions({
    queryKey: status ? [...runsKey(teamId), status] : runsKey(teamId),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: RunPage) => page.next_cursor ?? undefined,
    queryFn: async ({ pageParam }) => {
      const query = { team_id: teamId, status, limit: 24, cursor: pageParam, include: 'inputs' as const };
      return dataOf(await api.GET('/generations', { params: { query } }));
    },
  });
}

/** useRuns reads the account's runs with their inputs, the newest first, a page at a time. */
export function useRuns(teamId: string | undefined, { status, poll = false, enabled = true }: RunOptions = {}) {
  return useInfiniteQuery({
    ...runsQuery(teamId, status),
    enabled,
    refetchInterval: (query) => (poll && query.state.data && hasPending(query.state.data) ? pollTime : false),
  });
}

function hasPending(pages: RunPages): boolean {
  return pages.pages.some((page) => page.data.some((run) => run.status === 'pending'));
}

/** addStartedRun puts a run that was just accepted into the cache, or only its inputs where an event was faster. */
export function addStartedRun(cache: QueryClient, teamId: string | undefined, run: Run): void {
  const known = cache
    .getQueryData<RunPages>(runsKey(teamId))
    ?.pages.flatMap((page) => page.data)
    .find((one) => one.request_id === run.request_id);

  putRun(cache, teamId, known ? { ...known, inputs: run.inputs } : run);
}

/** changeOutput changes one result of a run in the cache, such as when it was deleted. */
export function changeOutput(
  cache: QueryClient,
  teamId: string | undefined,
  id: string,
  change: Partial<Schemas['GenerationOutput']>,
): void {
  cache.setQueryData<RunPages>(runsKey(teamId), (pages) => {
    const changeRun = (run: Run) =>
      run.outputs.some((output) => output.id === id)
        ? { ...run, outputs: run.outputs.map((output) => (output.id === id ? { ...output, ...change } : output)) }
        : run;
    return pages && { ...pages, pages: pages.pages.map((page) => ({ ...page, data: page.data.map(changeRun) })) };
  });
}

/** putRun puts a run's newest state into the cache: in place of its older one, or before all others. */
export function putRun(cache: QueryClient, teamId: string | undefined, run: Run): void {
  cache.setQueryData<RunPages>(runsKey(teamId), (pages) => {
    const first = pages?.pages[0];
    if (!pages || !first) {
      return pages;
    }

    const known = pages.pages.some((page) => page.data.some((one) => one.request_id === run.request_id));
    if (!known) {
      return { ...pages, pages: [{ ...first, data: [run, ...first.data] }, ...pages.pages.slice(1)] };
    }

    const replace = (one: Run) => (one.request_id === run.request_id ? mergeRun(one, run) : one);
    return { ...pages, pages: pages.pages.map((page) => ({ ...page, data: page.data.map(replace) })) };
  });
}

/** mergeRun keeps the inputs, which events do not carry, and never goes back from an ended run to a pending one. */
export function mergeRun(known: Run, next: Run): Run {
  if (known.status !== 'pending' && next.status === 'pending') {
    return known;
  }
  return { ...next, inputs: next.inputs ?? known.inputs };
}
