import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';
import { ApiError } from '../api/errors';
import { readAll } from './list';

export type Company = Schemas['Company'];
export type CompanyPermission = Schemas['CompanyPermission'];
export type Team = Schemas['Team'];
export type Budget = Schemas['Budget'];

/** companiesKey is the place of the person's companies in the cache. */
export const companiesKey = ['companies'];

/** teamsKey is the place of a company's teams in the cache. */
export const teamsKey = (companyId: string) => ['teams', companyId];

/** budgetKey is the place of a team's budget in the cache. */
export const budgetKey = (teamId: string) => ['budget', teamId];

/** useCompanies reads the companies of the person. */
export function useCompanies() {
  return useQuery({ queryKey: companiesKey, queryFn: async () => dataOf(await api.GET('/companies')).data });
}

/** useTeams reads all teams of a company. */
export function useTeams(companyId: string | undefined) {
  return useQuery({
    queryKey: teamsKey(companyId ?? ''),
    enabled: companyId !== undefined,
    queryFn: async () => {
      const readPage = async (cursor: string | undefined) =>
        dataOf(
          await api.GET('/companies/{company_id}/teams', {
            params: { path: { company_id: companyId ?? '' }, query: { limit: 100, cursor } },
          }),
        );
      return (await readAll(readPage)).rows;
    },
  });
}

/** readBudget reads the budget of a team; null if it has none. */
export async function readBudget(teamId: string): Promise<Budget | null> {
  try {
    return dataOf(await api.GET('/teams/{team_id}/budget', { params: { path: { team_id: teamId } } }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      return null;
    }
    throw error;
  }
}
