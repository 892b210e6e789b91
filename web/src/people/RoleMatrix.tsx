import type { ReactNode } from 'react';
import { text } from '../text/people';
import { IconButton } from '../ui/Button';
import { classes } from '../ui/classes';
import { Icon } from '../ui/Icon';
import { useToast } from '../ui/Toast';
import { makeMatrix, type Role } from './permissions';
import styles from './RoleMatrix.module.css';

type Props = {
  roles: Role[];
  known: readonly string[];
  /** Further rows, such as the tools of a role. */
  more?: Array<{ label: string; help?: string; cell: (role: Role) => ReactNode }>;
  /** Why a role cannot be changed or deleted by this person, if that is so. */
  refuseChange: (role: Role) => string | undefined;
  refuseDelete: (role: Role) => string | undefined;
  onChange: (role: Role) => void;
  onDelete: (role: Role) => void;
};

/** RoleMatrix shows permissions as rows and roles as columns. */
export function RoleMatrix({ roles, known, more = [], ...actions }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard.
    <div role="group" className={styles.scroll} aria-label={text.roles} tabIndex={0}>
      <table className={styles.matrix}>
        <thead>
          <tr>
            <th scope="col">{text.permission}</th>
            {roles.map((role) => (
              <th key={role.name} scope="col">
                <RoleHead role={role} {...actions} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {makeMatrix(roles, known).map((row) => (
            <tr key={row.permission}>
              <th scope="row">
                {text.permissions[row.permission] ?? row.permission}
                <span className={classes(styles.help, 'small soft')}>{text.permissionHelp[row.permission]}</span>
              </th>
              {row.has.map((has, at) => (
                <td key={roles[at]?.name}>
                  <Mark on={has} />
                </td>
              ))}
            </tr>
          ))}
          {more.map((row) => (
            <tr key={row.label}>
              <th scope="row">
                {row.label}
                <span className={classes(styles.help, 'small soft')}>{row.help}</span>
              </th>
              {roles.map((role) => (
                <td key={role.name}>{row.cell(role)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Mark({ on }: { on: boolean }) {
  return (
    <span className={on ? styles.yes : styles.no}>
      {on ? <Icon name="check" /> : '–'}
      <span className="unseen">{on ? text.yes : text.no}</span>
    </span>
  );
}

type HeadProps = Omit<Props, 'roles' | 'known' | 'more'> & { role: Role };

function RoleHead({ role, refuseChange, refuseDelete, onChange, onDelete }: HeadProps) {
  const toast = useToast();
  const tell = (reason: string | undefined, act: () => void) => () => (reason ? toast({ text: reason }) : act());
  const noChange = refuseChange(role);
  const noDelete = refuseDelete(role);

  return (
    <span className={styles.head}>
      <b>{role.name}</b>
      <span className={styles.buttons}>
        <IconButton
          small
          icon="settings"
          label={text.editRole(role.name)}
          aria-disabled={noChange ? true : undefined}
          onClick={tell(noChange, () => onChange(role))}
        />
        <IconButton
          small
          icon="trash"
          label={text.roleDelete(role.name)}
          aria-disabled={noDelete ? true : undefined}
          onClick={tell(noDelete, () => onDelete(role))}
        />
      </span>
    </span>
  );
}
