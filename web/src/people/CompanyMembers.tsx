import { useState } from 'react';
import { api } from '../api/client';
import type { Company } from '../data/companies';
import { ListView } from '../data/ListView';
import { text } from '../text/people';
import { Button } from '../ui/Button';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Denied } from './Denied';
import { ChangeRoleDialog, RemoveDialog } from './MemberDialogs';
import { type Membership, MemberTable } from './MemberTable';
import { canGive } from './permissions';
import { keys, useCompanyAccess, useCompanyMembers, useCompanyRoles } from './queries';

/** CompanyMembers lists the members of a company, changes their roles and removes them. */
export function CompanyMembers({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const members = useCompanyMembers(company.id, access.has('MANAGE_MEMBERS'));
  const roles = useCompanyRoles(company.id);
  const [changing, setChanging] = useState<Membership>();
  const [leaving, setLeaving] = useState<Membership>();
  const self: Membership = { uid: access.uid, email: '', role: company.role, joined: company.joined };
  const refused = access.refuse('MANAGE_MEMBERS');
  const path = (uid: string) => ({ params: { path: { company_id: company.id, uid } } });

  const refuse = (member: Membership) => {
    const permissions = roles.data?.find((role) => role.name === member.role)?.permissions ?? [];
    return canGive(access.permissions, permissions) ? undefined : text.deniedMore;
  };
  const leave = refused && (
    <Button kind="danger" onClick={() => setLeaving(self)}>
      {text.leave}
    </Button>
  );

  return (
    <Panel title={text.members} actions={leave}>
      <Denied reason={refused}>
        <ListView list={members} empty={<Empty title={text.membersEmpty} />}>
          {(rows) => (
            <MemberTable
              members={rows}
              uid={access.uid}
              refuse={refuse}
              onChangeRole={setChanging}
              onRemove={setLeaving}
            />
          )}
        </ListView>
      </Denied>
      <ChangeRoleDialog
        member={changing}
        roles={roles.data ?? []}
        gives={access.permissions}
        change={(uid, role) => api.PUT('/companies/{company_id}/members/{uid}', { ...path(uid), body: { role } })}
        refresh={[keys.members(company.id)]}
        onClose={() => setChanging(undefined)}
      />
      <RemoveDialog
        member={leaving}
        name={company.name}
        why={text.removeCompanyWhy}
        remove={(uid) => api.DELETE('/companies/{company_id}/members/{uid}', path(uid))}
        refresh={[keys.members(company.id)]}
        onClose={() => setLeaving(undefined)}
      />
    </Panel>
  );
}
