import { useState } from 'react';
import { api } from '../api/client';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import type { Company, Team } from '../data/companies';
import { QueryView } from '../data/ListView';
import { text } from '../text/people';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { Denied } from './Denied';
import { canGive, type Role, rolesOfTeam, teamPermissions } from './permissions';
import { keys, type TeamRole, useTeamAccess, useTeamRoles } from './queries';
import { DeleteRoleDialog } from './RoleFields';
import { RoleMatrix } from './RoleMatrix';
import { TeamRoleForm } from './TeamRoleForm';

/** nameWindow writes the length of time of a spending limit. */
export const nameWindow = (seconds: number) => text.windows[seconds] ?? text.seconds(seconds);

/** TeamRoles shows what the roles of a team may do, with which tools, and how much people with them can spend. */
export function TeamRoles({ company, team }: { company: Company; team: Team }) {
  const access = useTeamAccess(company, team);
  const { me } = useAccount();
  const roles = useTeamRoles(team.id, access.sees);
  // Those who are not in the team read the tools of their own account.
  const tools = useTools(me.accounts.some((one) => one.id === team.id) ? team.id : undefined);
  const [editing, setEditing] = useState<TeamRole | 'new'>();
  const [leaving, setLeaving] = useState<Role>();
  const find = (role: Role) => roles.data?.find((one) => one.name === role.name);
  const tooMuch = (role: Role) =>
    access.gives && !canGive(access.gives, role.permissions) ? text.deniedMore : undefined;

  const make = (
    <ReasonButton kind="main" icon="plus" reason={access.refusal} onClick={() => setEditing('new')}>
      {text.newRole}
    </ReasonButton>
  );
  const more = [
    { label: text.tools, cell: (role: Role) => describeTools(find(role)) },
    { label: text.apps, cell: (role: Role) => describeApps(find(role)) },
    { label: text.spend, cell: (role: Role) => describeSpend(find(role)) },
  ];

  return (
    <Panel title={text.roles} actions={make}>
      <Denied reason={access.sees ? undefined : text.deniedTeam(team.name)}>
        <div className="stack">
          <p className="soft">{text.rolesWhy}</p>
          <QueryView query={roles} height={280}>
            {(rows) => (
              <RoleMatrix
                roles={rolesOfTeam(rows)}
                known={teamPermissions}
                more={more}
                refuseChange={(role) => access.refusal ?? tooMuch(role)}
                refuseDelete={(role) => access.refusal ?? (role.name === 'member' ? text.roleFixed : tooMuch(role))}
                onChange={(role) => setEditing(find(role))}
                onDelete={setLeaving}
              />
            )}
          </QueryView>
        </div>
      </Denied>
      {editing && (
        <TeamRoleForm
          team={team}
          role={editing === 'new' ? undefined : editing}
          taken={roles.data?.map((role) => role.name) ?? []}
          gives={access.gives}
          tools={tools.data ?? []}
          onClose={() => setEditing(undefined)}
        />
      )}
      <DeleteRoleDialog
        role={leaving}
        remove={(role) => api.DELETE('/teams/{team_id}/roles/{role}', { params: { path: { team_id: team.id, role } } })}
        refresh={[keys.teamRoles(team.id)]}
        onClose={() => setLeaving(undefined)}
      />
    </Panel>
  );
}

function describeTools(role: TeamRole | undefined): string {
  if (!role) {
    return '';
  }
  const allowed = role.tools_allowed.length > 0 ? text.toolsCount(role.tools_allowed.length) : text.toolsAll;
  const blocked = role.tools_blocked.length > 0 ? `, ${text.toolsBlockedCount(role.tools_blocked.length)}` : '';

  return `${allowed}${blocked}`;
}

function describeApps(role: TeamRole | undefined): string {
  return !role || role.plugin_kinds.includes('*') ? text.appsAll : role.plugin_kinds.join(', ');
}

function describeSpend(role: TeamRole | undefined): string {
  return role?.spend ? text.spendOf(role.spend.tokens, nameWindow(role.spend.window_seconds)) : text.spendNone;
}
