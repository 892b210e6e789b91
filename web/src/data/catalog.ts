import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';

export type Tool = Schemas['Tool'];
export type ToolDetail = Schemas['ToolDetail'];

const catalogLife = 5 * 60_000;

async function readTools(teamId: string | undefined): Promise<Tool[]> {
  const tools: Tool[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: 100, cursor, team_id: teamId };
    const page = dataOf(await api.GET('/tools', { params: { query } }));
    tools.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor);

  return tools;
}

/** toolsQuery is the question for all tools of the account. */
export function toolsQuery(teamId: string | undefined) {
  return queryOptions({ queryKey: ['tools', teamId], queryFn: () => readTools(teamId), staleTime: catalogLife });
}

/** useTools reads all tools of the account. */
export const useTools = (teamId: string | undefined) => useQuery(toolsQuery(teamId));

/** toolQuery is the question for one tool with its form. */
export function toolQuery(toolId: string, teamId: string | undefined) {
  return queryOptions({
    queryKey: ['tool', toolId, teamId],
    staleTime: catalogLife,
    queryFn: async () =>
      dataOf(await api.GET('/tools/{tool_id}', { params: { path: { tool_id: toolId }, query: { team_id: teamId } } })),
  });
}

/** useTool reads one tool with its form. */
export function useTool(toolId: string | undefined, teamId: string | undefined) {
  return useQuery({ ...toolQuery(toolId ?? '', teamId), enabled: toolId !== undefined });
}

/** kitsQuery is the question for the operator's collections of tools. */
export function kitsQuery(teamId: string | undefined) {
  return queryOptions({
    queryKey: ['kits', teamId],
    staleTime: catalogLife,
    queryFn: async () => dataOf(await api.GET('/kits', { params: { query: { team_id: teamId } } })).data,
  });
}

/** useKits reads the operator's collections of tools. */
export const useKits = (teamId: string | undefined) => useQuery(kitsQuery(teamId));
