import { useState } from 'react';
import { api } from '../api/client';
import { meKey } from '../data/account';
import { problemOf, useAction } from '../data/action';
import { type Company, type CompanyPermission, companiesKey } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { QueryView } from '../data/ListView';
import { text } from '../text/people';
import { Checks } from '../ui/Checks';
import { Field } from '../ui/Field';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { canGive, companyPermissions, isRoleName, type Role } from './permissions';
import { keys, useCompanyAccess, useCompanyRoles } from './queries';
import { DeleteRoleDialog, RoleNameField } from './RoleFields';
import { RoleMatrix } from './RoleMatrix';

/** CompanyRoles shows which permissions the roles of a company have, and makes, changes and deletes roles. */
export function CompanyRoles({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const roles = useCompanyRoles(company.id);
  const [editing, setEditing] = useState<Role | 'new'>();
  const [leaving, setLeaving] = useState<Role>();
  const refused = access.refuse('MANAGE_MEMBERS');
  const tooMuch = (role: Role) => (canGive(access.permissions, role.permissions) ? undefined : text.deniedMore);
  const path = (role: string) => ({ params: { path: { company_id: company.id, role } } });

  const make = (
    <ReasonButton kind="main" icon="plus" reason={refused} onClick={() => setEditing('new')}>
      {text.newRole}
    </ReasonButton>
  );

  return (
    <Panel title={text.roles} actions={make}>
      <div className="stack">
        <p className="soft">{text.rolesWhy}</p>
        <QueryView query={roles} height={280}>
          {(rows) => (
            <RoleMatrix
              roles={rows}
              known={companyPermissions}
              refuseChange={(role) => refused ?? (role.name === 'admin' ? text.roleAdmin : tooMuch(role))}
              refuseDelete={(role) =>
                refused ?? (['admin', 'member'].includes(role.name) ? text.roleFixed : tooMuch(role))
              }
              onChange={setEditing}
              onDelete={setLeaving}
            />
          )}
        </QueryView>
      </div>
      {editing && (
        <RoleForm
          company={company}
          role={editing === 'new' ? undefined : editing}
          taken={roles.data?.map((role) => role.name) ?? []}
          onClose={() => setEditing(undefined)}
        />
      )}
      <DeleteRoleDialog
        role={leaving}
        remove={(role) => api.DELETE('/companies/{company_id}/roles/{role}', path(role))}
        refresh={[keys.roles(company.id)]}
        onClose={() => setLeaving(undefined)}
      />
    </Panel>
  );
}

type RoleFormProps = { company: Company; role: Role | undefined; taken: string[]; onClose: () => void };

function RoleForm({ company, role, taken, onClose }: RoleFormProps) {
  const access = useCompanyAccess(company);
  const [name, setName] = useState(role?.name ?? '');
  const [permissions, setPermissions] = useState(role?.permissions ?? []);
  const [tried, setTried] = useState(false);
  const isTaken = !role && taken.includes(name);

  const save = useAction(
    () =>
      api.PUT('/companies/{company_id}/roles/{role}', {
        params: { path: { company_id: company.id, role: name } },
        body: { permissions: permissions as CompanyPermission[] },
      }),
    {
      done: () => text.roleSaved(name),
      refresh: [keys.roles(company.id), meKey, companiesKey],
      onDone: onClose,
    },
  );
  const submit = () => {
    setTried(true);
    if (isRoleName(name) && !isTaken) {
      save.run();
    }
  };

  return (
    <FormDialog
      open
      title={role ? text.editRole(role.name) : text.newRoleTitle}
      submit={text.save}
      action={save}
      fields={['permissions']}
      onSubmit={submit}
      onClose={onClose}
    >
      {!role && <RoleNameField name={name} taken={isTaken} tried={tried} onChange={setName} />}
      <Field label={text.rolePermissions} group problem={problemOf(save.error, 'permissions')}>
        {() => (
          <Checks
            options={companyPermissions.map((value) => ({
              value,
              label: text.permissions[value],
              help: text.permissionHelp[value],
              disabled: !access.permissions.includes(value),
            }))}
            chosen={permissions}
            onChange={setPermissions}
          />
        )}
      </Field>
    </FormDialog>
  );
}
