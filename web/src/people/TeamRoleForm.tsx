import { useState } from 'react';
import { api } from '../api/client';
import { meKey } from '../data/account';
import { problemOf, useAction } from '../data/action';
import type { Tool } from '../data/catalog';
import type { Team } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import { Checks } from '../ui/Checks';
import { Field, NumberInput, Select, TextInput } from '../ui/Field';
import { Segments } from '../ui/Segments';
import { isRoleName, listPermissions, readKinds, teamPermissions } from './permissions';
import { keys, type TeamRole } from './queries';
import { RoleNameField } from './RoleFields';
import styles from './RoleMatrix.module.css';
import { ToolChoice } from './ToolChoice';

type Props = {
  team: Team;
  role: TeamRole | undefined;
  taken: string[];
  /** The permissions that the person can give; absent for all. */
  gives?: readonly string[];
  tools: Tool[];
  onClose: () => void;
};

const windows = Object.keys(text.windows).map(Number);

/** TeamRoleForm makes or changes a role of a team: permissions, tools, apps and the spending limit. */
export function TeamRoleForm({ team, role, taken, gives, tools, onClose }: Props) {
  const [name, setName] = useState(role?.name ?? '');
  const [permissions, setPermissions] = useState(role ? listPermissions(role.permissions) : ['GENERATE']);
  const [some, setSome] = useState(role ? role.tools_allowed.length > 0 : false);
  const [allowed, setAllowed] = useState(role?.tools_allowed ?? []);
  const [blocked, setBlocked] = useState(role?.tools_blocked ?? []);
  const [kinds, setKinds] = useState(role?.plugin_kinds.join(', ') ?? '*');
  const [spend, setSpend] = useState<number | undefined>(role?.spend?.tokens);
  const [window, setWindow] = useState(role?.spend?.window_seconds ?? 86_400);
  const [tried, setTried] = useState(false);
  const isTaken = !role && taken.includes(name);
  const noTools = some && allowed.length === 0;
  const badSpend = spend !== undefined && (spend < 0 || !Number.isInteger(spend));

  const save = useAction(
    () =>
      api.PUT('/teams/{team_id}/roles/{role}', {
        params: { path: { team_id: team.id, role: name } },
        body: {
          permissions: Object.fromEntries(permissions.map((permission) => [permission, true])),
          tools_allowed: some ? allowed : [],
          tools_blocked: blocked,
          plugin_kinds: readKinds(kinds),
          spend: spend === undefined ? null : { tokens: spend, window_seconds: window },
        },
      }),
    { done: () => text.roleSaved(name), refresh: [keys.teamRoles(team.id), meKey], onDone: onClose },
  );
  const submit = () => {
    setTried(true);
    if (isRoleName(name) && !isTaken && !noTools && !badSpend) {
      save.run();
    }
  };

  return (
    <FormDialog
      open
      wide
      title={role ? text.editRole(role.name) : text.newRoleTitle}
      submit={text.save}
      action={save}
      fields={['permissions', 'plugin_kinds', 'spend.tokens']}
      onSubmit={submit}
      onClose={onClose}
    >
      {!role && <RoleNameField name={name} taken={isTaken} tried={tried} onChange={setName} />}
      <Field label={text.rolePermissions} group problem={problemOf(save.error, 'permissions')}>
        {() => (
          <Checks
            options={teamPermissions.map((value) => ({
              value,
              label: text.permissions[value],
              help: text.permissionHelp[value],
              disabled: gives && !gives.includes(value),
            }))}
            chosen={permissions}
            onChange={setPermissions}
          />
        )}
      </Field>
      <Field label={text.tools} group problem={tried && noTools ? text.toolsSomeWrong : undefined}>
        {() => (
          <div className={styles.tools}>
            <div>
              <Segments
                label={text.tools}
                value={some ? 'some' : 'all'}
                options={[
                  { value: 'all', label: text.toolsAll },
                  { value: 'some', label: text.toolsSome },
                ]}
                onChange={(value) => setSome(value === 'some')}
              />
            </div>
            {some && <ToolChoice label={text.toolsSome} tools={tools} chosen={allowed} onChange={setAllowed} />}
          </div>
        )}
      </Field>
      <Field label={text.toolsBlocked} note={text.toolsCount(blocked.length)} group>
        {() => <ToolChoice label={text.toolsBlocked} tools={tools} chosen={blocked} onChange={setBlocked} />}
      </Field>
      <Field label={text.apps} help={text.appsHelp} problem={problemOf(save.error, 'plugin_kinds')}>
        {(attributes) => <TextInput {...attributes} value={kinds} onChange={(event) => setKinds(event.target.value)} />}
      </Field>
      <Field label={text.spend} group problem={badSpend ? text.spendWrong : problemOf(save.error, 'spend.tokens')}>
        {() => (
          <div className={styles.pair}>
            <NumberInput
              aria-label={text.spendTokens}
              placeholder={text.spendNone}
              min={0}
              step={1}
              value={spend}
              onChange={setSpend}
            />
            <Select
              aria-label={text.spendWindow}
              value={window}
              disabled={spend === undefined}
              onChange={(event) => setWindow(Number(event.target.value))}
            >
              {[...new Set([...windows, window])].map((seconds) => (
                <option key={seconds} value={seconds}>
                  {`${text.spendWindow} ${text.windows[seconds] ?? text.seconds(seconds)}`}
                </option>
              ))}
            </Select>
          </div>
        )}
      </Field>
    </FormDialog>
  );
}
