import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';
import { useAccount } from '../data/account';
import type { Company, CompanyPermission, Team } from '../data/companies';
import { readAll, useList } from '../data/list';
import { text } from '../text/people';
import { listPermissions } from './permissions';

export type TeamRole = Schemas['TeamRole'];

/** The places of a company's and a team's people in the cache. */
export const keys = {
  members: (companyId: string) => ['company-members', companyId],
  roles: (companyId: string) => ['company-roles', companyId],
  invitations: (companyId: string) => ['company-invitations', companyId],
  domains: (companyId: string) => ['company-domains', companyId],
  scim: (companyId: string) => ['company-scim', companyId],
  tokens: (companyId: string) => ['company-tokens', companyId],
  audit: (companyId: string) => ['company-audit', companyId],
  team: (teamId: string) => ['team', teamId],
  teamMembers: (teamId: string) => ['team-members', teamId],
  teamRoles: (teamId: string) => ['team-roles', teamId],
};

/** useCompanyAccess returns which permissions the person has in a company, and why something is refused. */
export function useCompanyAccess(company: Company) {
  const { me } = useAccount();
  const mine: string[] = listPermissions(me.company_permissions[company.id] ?? {});
  const permissions = mine.length > 0 ? mine : company.permissions;
  const has = (permission: CompanyPermission) => permissions.includes(permission);
  const refuse = (permission: CompanyPermission) =>
    has(permission) ? undefined : text.denied(company.role, text.permissions[permission] ?? permission, company.name);

  return { uid: me.user.uid, permissions, has, refuse };
}

/** useTeamAccess returns whether the person may see and manage a team, and with which permissions. */
export function useTeamAccess(company: Company, team: Team) {
  const { me } = useAccount();
  const access = useCompanyAccess(company);
  const account = me.accounts.find((one) => one.id === team.id);
  const managesAll = access.has('MANAGE_TEAMS');
  const manages = managesAll || account?.permissions.MANAGE_TEAM === true;

  return {
    ...access,
    /** Whether the person is a member of the team, or manages all teams. */
    sees: managesAll || account !== undefined,
    isMember: account !== undefined,
    manages,
    refusal: manages ? undefined : text.deniedManage,
    /** What the person can give to others in the team; those who manage all teams can give everything. */
    gives: managesAll ? undefined : listPermissions(account?.permissions ?? {}),
  };
}

/** useCompanyMembers reads the members of a company a page at a time. */
export function useCompanyMembers(companyId: string, enabled: boolean) {
  return useList(
    keys.members(companyId),
    async (cursor) =>
      dataOf(
        await api.GET('/companies/{company_id}/members', {
          params: { path: { company_id: companyId }, query: { limit: 50, cursor } },
        }),
      ),
    { enabled },
  );
}

/** useMemberNames reads all members of a company, to write names for ids. */
export function useMemberNames(companyId: string, enabled: boolean) {
  const query = useQuery({
    queryKey: [...keys.members(companyId), 'names'],
    enabled,
    queryFn: async () => {
      const readPage = async (cursor: string | undefined) =>
        dataOf(
          await api.GET('/companies/{company_id}/members', {
            params: { path: { company_id: companyId }, query: { limit: 100, cursor } },
          }),
        );
      return (await readAll(readPage)).rows;
    },
  });
  const nameOf = (uid: string) => query.data?.find((member) => member.uid === uid)?.email ?? uid;

  return { members: query.data, nameOf };
}

/** useCompanyRoles reads the roles of a company. */
export function useCompanyRoles(companyId: string) {
  return useQuery({
    queryKey: keys.roles(companyId),
    queryFn: async () =>
      dataOf(await api.GET('/companies/{company_id}/roles', { params: { path: { company_id: companyId } } })).data,
  });
}

/** useTeamRoles reads the roles of a team. */
export function useTeamRoles(teamId: string | undefined, enabled = true) {
  return useQuery({
    queryKey: keys.teamRoles(teamId ?? ''),
    enabled: enabled && teamId !== undefined,
    queryFn: async () =>
      dataOf(await api.GET('/teams/{team_id}/roles', { params: { path: { team_id: teamId ?? '' } } })).data,
  });
}

/** useTeam reads one team. */
export function useTeam(teamId: string | undefined) {
  return useQuery({
    queryKey: keys.team(teamId ?? ''),
    enabled: teamId !== undefined,
    queryFn: async () => dataOf(await api.GET('/teams/{team_id}', { params: { path: { team_id: teamId ?? '' } } })),
  });
}
