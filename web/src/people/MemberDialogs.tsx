import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { meKey, useAccount } from '../data/account';
import { problemOf, useAction } from '../data/action';
import { companiesKey } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import type { Membership } from './MemberTable';
import type { Role } from './permissions';
import { RoleSelect } from './RoleSelect';

type ChangeRoleProps = {
  member: Membership | undefined;
  roles: Role[];
  gives?: readonly string[];
  change: (uid: string, role: string) => Promise<unknown>;
  refresh: QueryKey[];
  onClose: () => void;
};

/** ChangeRoleDialog gives a member another role. */
export function ChangeRoleDialog({ member, ...rest }: ChangeRoleProps) {
  return member ? <ChangeRoleForm member={member} {...rest} /> : null;
}

function ChangeRoleForm({ member, roles, gives, change, refresh, onClose }: ChangeRoleProps & { member: Membership }) {
  const [role, setRole] = useState(member.role);
  const action = useAction(() => change(member.uid, role), {
    done: () => text.changeRoleDone(member.email, role),
    refresh: [...refresh, meKey, companiesKey],
    onDone: onClose,
  });

  return (
    <FormDialog
      open
      title={text.changeRoleTitle(member.email)}
      submit={text.save}
      action={action}
      fields={['role']}
      disabled={role === member.role}
      onSubmit={() => action.run()}
      onClose={onClose}
    >
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

type RemoveProps = {
  member: Membership | undefined;
  /** The name of the company or team. */
  name: string;
  why: string;
  remove: (uid: string) => Promise<unknown>;
  refresh: QueryKey[];
  onClose: () => void;
};

/** RemoveDialog removes a member from a company or a team, or lets the person leave it. */
export function RemoveDialog({ member, name, why, remove, refresh, onClose }: RemoveProps) {
  const { me, linkTo } = useAccount();
  const cache = useQueryClient();
  const [, navigate] = useLocation();
  const self = member?.uid === me.user.uid;

  const action = useAction((one: Membership) => remove(one.uid), {
    done: (_, one) => (self ? text.left(name) : text.removed(one.email)),
    refresh: self ? [] : refresh,
    onDone: () => {
      onClose();
      if (self) {
        void cache.invalidateQueries({ queryKey: meKey });
        void cache.invalidateQueries({ queryKey: companiesKey });
        navigate(linkTo('/people'));
      }
    },
  });

  return (
    <FormDialog
      open={member !== undefined}
      title={self ? text.leaveTitle(name) : text.removeTitle(member?.email ?? '', name)}
      submit={self ? text.leave : text.remove}
      action={action}
      danger
      onSubmit={() => member && action.run(member)}
      onClose={onClose}
    >
      <p>{self ? text.leaveWhy : why}</p>
    </FormDialog>
  );
}
