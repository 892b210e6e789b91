import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { problemOf, useAction } from '../data/action';
import { type Company, teamsKey, useTeams } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { QueryView } from '../data/ListView';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { ButtonLink } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { Field, TextInput } from '../ui/Field';
import { formatDay } from '../ui/format';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { useCompanyAccess } from './queries';

/** Teams lists the teams of a company, and makes new ones. A team itself is managed on its own page. */
export function Teams({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const { me, linkTo } = useAccount();
  const teams = useTeams(company.id);
  const [making, setMaking] = useState(false);
  const isMine = (id: string) => me.accounts.some((one) => one.id === id);

  const make = (
    <ReasonButton kind="main" icon="plus" reason={access.refuse('MANAGE_TEAMS')} onClick={() => setMaking(true)}>
      {text.newTeam}
    </ReasonButton>
  );

  return (
    <Panel title={text.teams} actions={make}>
      <QueryView query={teams} height={160}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title={text.teamsEmpty}>{text.teamsEmptyWhy}</Empty>
          ) : (
            <Table
              label={text.teams}
              rows={rows}
              keyOf={(team) => team.id}
              columns={[
                {
                  head: text.teamName,
                  cell: (team) => (
                    <span className="row">
                      <b>{team.name}</b>
                      {isMine(team.id) && <Tag tone="hot">{text.teamMine}</Tag>}
                    </span>
                  ),
                },
                { head: text.teamSince, cell: (team) => formatDay(team.created) },
                {
                  head: shared.actions,
                  quiet: true,
                  end: true,
                  cell: (team) => (
                    <ButtonLink small href={linkTo(`/people/${team.id}`)} label={text.teamOpenOne(team.name)}>
                      {text.teamOpen}
                    </ButtonLink>
                  ),
                },
              ]}
            />
          )
        }
      </QueryView>
      {making && <TeamForm company={company} onClose={() => setMaking(false)} />}
    </Panel>
  );
}

function TeamForm({ company, onClose }: { company: Company; onClose: () => void }) {
  const { linkTo } = useAccount();
  const [, navigate] = useLocation();
  const [name, setName] = useState('');
  const [tried, setTried] = useState(false);
  const missing = tried && !name.trim() ? text.teamNameWrong : undefined;

  const make = useAction(
    async () =>
      dataOf(
        await api.POST('/companies/{company_id}/teams', {
          params: { path: { company_id: company.id } },
          body: { name: name.trim() },
        }),
      ),
    {
      done: (team) => text.teamMade(team.name),
      refresh: [teamsKey(company.id)],
      onDone: (team) => {
        onClose();
        navigate(linkTo(`/people/${team.id}`));
      },
    },
  );
  const submit = () => {
    setTried(true);
    if (name.trim()) {
      make.run();
    }
  };

  return (
    <FormDialog
      open
      title={text.newTeamTitle}
      submit={text.newTeam}
      action={make}
      fields={['name']}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label={text.teamName} problem={missing ?? problemOf(make.error, 'name')}>
        {(attributes) => (
          <TextInput maxLength={100} {...attributes} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
    </FormDialog>
  );
}
