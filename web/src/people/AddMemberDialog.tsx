import { useState } from 'react';
import { meKey } from '../data/account';
import { problemOf, useAction } from '../data/action';
import type { Company, Team } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import { Field, Select, TextInput } from '../ui/Field';
import type { Role } from './permissions';
import { keys, useCompanyAccess, useMemberNames } from './queries';
import { RoleSelect } from './RoleSelect';

type Props = {
  company: Company;
  team: Team;
  roles: Role[];
  gives?: readonly string[];
  add: (uid: string, role: string) => Promise<unknown>;
  onClose: () => void;
};

/** AddMemberDialog adds a member of the company to a team. */
export function AddMemberDialog({ company, team, roles, gives, add, onClose }: Props) {
  const access = useCompanyAccess(company);
  const names = useMemberNames(company.id, access.has('MANAGE_MEMBERS'));
  const [uid, setUid] = useState('');
  const [role, setRole] = useState('member');
  const action = useAction(() => add(uid.trim(), role), {
    done: () => text.addMemberDone,
    refresh: [keys.teamMembers(team.id), meKey],
    onDone: onClose,
  });

  return (
    <FormDialog
      open
      title={text.addMemberTitle(team.name)}
      submit={text.addMember}
      action={action}
      fields={['role']}
      disabled={uid.trim() === ''}
      onSubmit={() => action.run()}
      onClose={onClose}
    >
      {access.has('MANAGE_MEMBERS') ? (
        <Field label={text.addMemberPerson}>
          {(attributes) => (
            <Select {...attributes} value={uid} onChange={(event) => setUid(event.target.value)}>
              <option value="">{text.addMemberChoose}</option>
              {names.members?.map((member) => (
                <option key={member.uid} value={member.uid}>
                  {member.email}
                </option>
              ))}
            </Select>
          )}
        </Field>
      ) : (
        <Field label={text.addMemberId} help={text.addMemberNames}>
          {(attributes) => <TextInput {...attributes} value={uid} onChange={(event) => setUid(event.target.value)} />}
        </Field>
      )}
      <RoleSelect
        label={text.role}
        roles={roles}
        value={role}
        gives={gives}
        problem={problemOf(action.error, 'role')}
        onChange={setRole}
      />
    </FormDialog>
  );
}
