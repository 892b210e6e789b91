import { useState } from 'react';
import { useLocation } from 'wouter';
import { api } from '../api/client';
import { meKey, useAccount } from '../data/account';
import { hasUnnamedProblem, problemOf, useAction } from '../data/action';
import { type Company, type Team, teamsKey } from '../data/companies';
import { ErrorFault } from '../data/ErrorFault';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import { Button } from '../ui/Button';
import { Field, TextInput } from '../ui/Field';
import { Facts } from '../ui/Figures';
import { formatDay } from '../ui/format';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { keys, useTeamAccess } from './queries';

/** TeamSettings shows a team, renames it and deletes it. */
export function TeamSettings({ company, team }: { company: Company; team: Team }) {
  const access = useTeamAccess(company, team);
  const [leaving, setLeaving] = useState(false);
  const remove = (
    <ReasonButton kind="danger" icon="trash" reason={access.refuse('MANAGE_TEAMS')} onClick={() => setLeaving(true)}>
      {text.teamDelete}
    </ReasonButton>
  );

  return (
    <>
      <Panel title={text.team}>
        <Facts
          facts={[
            [text.teamCompany, company.name],
            [text.teamSince, formatDay(team.created)],
            [text.teamId, <code key="id">{team.id}</code>],
          ]}
        />
      </Panel>
      <Panel title={text.rename}>
        {access.refusal ? <Notice icon="lock">{access.refusal}</Notice> : <RenameForm team={team} />}
      </Panel>
      <Panel title={text.teamDelete} actions={remove}>
        <p className="soft">{text.teamDeleteNote}</p>
      </Panel>
      {leaving && <DeleteForm team={team} onClose={() => setLeaving(false)} />}
    </>
  );
}

function RenameForm({ team }: { team: Team }) {
  const [name, setName] = useState(team.name);
  const rename = useAction(
    () => api.PATCH('/teams/{team_id}', { params: { path: { team_id: team.id } }, body: { name: name.trim() } }),
    { done: () => text.renamed, refresh: [keys.team(team.id), teamsKey(team.company_id), meKey] },
  );
  const missing = name.trim() ? undefined : text.teamNameWrong;

  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        rename.run();
      }}
    >
      <Field label={text.teamName} problem={missing ?? problemOf(rename.error, 'name')}>
        {(attributes) => (
          <TextInput maxLength={100} {...attributes} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      {hasUnnamedProblem(rename.error, ['name']) && <ErrorFault error={rename.error} />}
      <div>
        <Button type="submit" kind="main" disabled={Boolean(missing) || name.trim() === team.name || rename.busy}>
          {text.rename}
        </Button>
      </div>
    </form>
  );
}

function DeleteForm({ team, onClose }: { team: Team; onClose: () => void }) {
  const { account, chooseAccount, me, linkTo } = useAccount();
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState('');
  const remove = useAction(() => api.DELETE('/teams/{team_id}', { params: { path: { team_id: team.id } } }), {
    done: () => text.teamDeleted(team.name),
    refresh: [teamsKey(team.company_id), meKey],
    onDone: () => {
      onClose();
      if (account.id === team.id) {
        chooseAccount(me.user.uid);
        navigate(`/people/${team.company_id}`);
        return;
      }
      navigate(linkTo(`/people/${team.company_id}`));
    },
  });

  return (
    <FormDialog
      open
      title={text.teamDeleteTitle(team.name)}
      submit={text.teamDelete}
      action={remove}
      danger
      disabled={typed.trim() !== team.name}
      onSubmit={() => remove.run()}
      onClose={onClose}
    >
      <p>{text.teamDeleteWhy}</p>
      <Field label={text.teamName}>
        {(attributes) => (
          <TextInput
            autoComplete="off"
            {...attributes}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
