import type { QueryKey } from '@tanstack/react-query';
import { useAction } from '../data/action';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import { Field, TextInput } from '../ui/Field';
import { isRoleName, type Role } from './permissions';

type NameProps = { name: string; taken: boolean; tried: boolean; onChange: (name: string) => void };

/** RoleNameField asks for the name of a new role. */
export function RoleNameField({ name, taken, tried, onChange }: NameProps) {
  const wrong = tried && !isRoleName(name) ? text.roleNameWrong : undefined;

  return (
    <Field label={text.roleName} help={text.roleNameHelp} problem={taken ? text.roleNameTaken : wrong}>
      {(attributes) => (
        <TextInput
          {...attributes}
          autoComplete="off"
          value={name}
          onChange={(event) => onChange(event.target.value.trim())}
        />
      )}
    </Field>
  );
}

type DeleteProps = {
  role: Role | undefined;
  remove: (role: string) => Promise<unknown>;
  refresh: QueryKey[];
  onClose: () => void;
};

/** DeleteRoleDialog deletes a role that nobody has. */
export function DeleteRoleDialog({ role, remove, refresh, onClose }: DeleteProps) {
  const action = useAction((name: string) => remove(name), {
    done: (_, name) => text.roleDeleted(name),
    refresh,
    onDone: onClose,
  });

  return (
    <FormDialog
      open={role !== undefined}
      title={text.roleDeleteTitle(role?.name ?? '')}
      submit={text.remove}
      action={action}
      danger
      onSubmit={() => role && action.run(role.name)}
      onClose={onClose}
    >
      <p>{text.roleDeleteWhy}</p>
    </FormDialog>
  );
}
