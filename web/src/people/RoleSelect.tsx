import { text } from '../text/people';
import { Field, Select } from '../ui/Field';
import { canGive, type Role } from './permissions';

type Props = {
  label: string;
  roles: Role[];
  value: string;
  /** The permissions that the person can give; absent for all. */
  gives?: readonly string[];
  problem?: string;
  onChange: (role: string) => void;
};

/** RoleSelect chooses a role, and says what it may do. Roles with more permissions than the person has cannot be chosen. */
export function RoleSelect({ label, roles, value, gives, problem, onChange }: Props) {
  const chosen = roles.find((role) => role.name === value);
  const names = chosen?.permissions.map((permission) => text.permissions[permission] ?? permission) ?? [];
  const help = names.length > 0 ? text.roleOf(names.join(', ')) : text.roleOfNothing;

  return (
    <Field label={label} help={chosen && help} problem={problem}>
      {(attributes) => (
        <Select {...attributes} value={value} onChange={(event) => onChange(event.target.value)}>
          {roles.map((role) => (
            <option key={role.name} value={role.name} disabled={gives && !canGive(gives, role.permissions)}>
              {role.name}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}
