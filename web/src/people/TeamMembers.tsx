import { useState } from 'react';
import { api, dataOf } from '../api/client';
import type { Company, Team } from '../data/companies';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text } from '../text/people';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { Empty } from '../ui/States';
import { AddMemberDialog } from './AddMemberDialog';
import { Denied } from './Denied';
import { ChangeRoleDialog, RemoveDialog } from './MemberDialogs';
import { type Membership, MemberTable } from './MemberTable';
import { canGive, rolesOfTeam } from './permissions';
import { keys, useTeamAccess, useTeamRoles } from './queries';

/** TeamMembers lists the members of a team, adds others, changes their roles and removes them. */
export function TeamMembers({ company, team }: { company: Company; team: Team }) {
  const access = useTeamAccess(company, team);
  const members = useList(
    keys.teamMembers(team.id),
    async (cursor) =>
      dataOf(
        await api.GET('/teams/{team_id}/members', {
          params: { path: { team_id: team.id }, query: { limit: 50, cursor } },
        }),
      ),
    { enabled: access.sees },
  );
  const roles = rolesOfTeam(useTeamRoles(team.id, access.sees).data ?? []);
  const [adding, setAdding] = useState(false);
  const [changing, setChanging] = useState<Membership>();
  const [leaving, setLeaving] = useState<Membership>();
  const path = (uid: string) => ({ params: { path: { team_id: team.id, uid } } });
  const give = (uid: string, role: string) =>
    api.PUT('/teams/{team_id}/members/{uid}', { ...path(uid), body: { role } });

  const refuse = (member: Membership) => {
    const permissions = roles.find((role) => role.name === member.role)?.permissions ?? [];
    return access.refusal ?? (access.gives && !canGive(access.gives, permissions) ? text.deniedMore : undefined);
  };
  const add = (
    <ReasonButton kind="main" icon="plus" reason={access.refusal} onClick={() => setAdding(true)}>
      {text.addMember}
    </ReasonButton>
  );

  return (
    <Panel title={text.members} actions={add}>
      <Denied reason={access.sees ? undefined : text.deniedTeam(team.name)}>
        <ListView list={members} empty={<Empty title={text.membersEmpty}>{text.membersEmptyTeam}</Empty>}>
          {(rows) => (
            <MemberTable
              members={rows}
              uid={access.uid}
              refuse={refuse}
              more={[{ head: text.memberHow, cell: (member) => text.memberHows[member.how], wideOnly: true }]}
              onChangeRole={setChanging}
              onRemove={setLeaving}
            />
          )}
        </ListView>
      </Denied>
      {adding && (
        <AddMemberDialog
          company={company}
          team={team}
          roles={roles}
          gives={access.gives}
          add={give}
          onClose={() => setAdding(false)}
        />
      )}
      <ChangeRoleDialog
        member={changing}
        roles={roles}
        gives={access.gives}
        change={give}
        refresh={[keys.teamMembers(team.id)]}
        onClose={() => setChanging(undefined)}
      />
      <RemoveDialog
        member={leaving}
        name={team.name}
        why={text.removeTeamWhy}
        remove={(uid) => api.DELETE('/teams/{team_id}/members/{uid}', path(uid))}
        refresh={[keys.teamMembers(team.id)]}
        onClose={() => setLeaving(undefined)}
      />
    </Panel>
  );
}
