import { useDeferredValue, useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text } from '../text/operator';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { SearchInput } from '../ui/Field';
import { Facts } from '../ui/Figures';
import { formatAgo, formatDay, formatNumber } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { GrantDialog, type GrantTarget } from './GrantDialog';
import styles from './Status.module.css';

type Company = Schemas['OperatorCompany'];

/** Companies lists all companies with their teams, and grants tokens to teams. */
export function Companies() {
  const [query, setQuery] = useState('');
  const [target, setTarget] = useState<GrantTarget>();
  const q = useDeferredValue(query.trim()) || undefined;
  const list = useList(['operator', 'companies', q], async (cursor) =>
    dataOf(await api.GET('/operator/companies', { params: { query: { q, limit: 20, cursor } } })),
  );

  return (
    <>
      <SearchInput
        className={styles.search}
        label={text.searchCompany}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      <ListView list={list} empty={<Empty title={text.companiesEmpty}>{text.companiesEmptyWhy}</Empty>}>
        {(rows) => rows.map((company) => <CompanyPanel key={company.id} company={company} onGrant={setTarget} />)}
      </ListView>
      <GrantDialog target={target} onClose={() => setTarget(undefined)} />
    </>
  );
}

function CompanyPanel({ company, onGrant }: { company: Company; onGrant: (target: GrantTarget) => void }) {
  const more = company.team_count - company.teams.length;

  return (
    <Panel title={company.name} actions={<Tag>{company.plan}</Tag>}>
      <div className="stack">
        <Facts
          facts={[
            [text.companyMembers, formatNumber(company.members)],
            [text.companyRuns, text.atLeast(company.runs)],
            [text.companyLast, company.last_run ? formatAgo(company.last_run) : text.companyNever],
            [text.companyZone, company.time_zone],
            [text.companySince, formatDay(company.created)],
          ]}
        />
        {company.teams.length === 0 ? (
          <p className="soft">{text.teamsNone}</p>
        ) : (
          <Table
            label={text.teams(company.name)}
            rows={company.teams}
            keyOf={(team) => team.id}
            columns={[
              { head: text.team, cell: (team) => team.name },
              { head: text.teamTokens, cell: (team) => formatNumber(team.balance.tokens), end: true },
              {
                head: shared.actions,
                quiet: true,
                end: true,
                cell: (team) => (
                  <Button
                    small
                    icon="coins"
                    aria-label={text.grantTitle(team.name)}
                    onClick={() => onGrant({ id: team.id, name: team.name, tokens: team.balance.tokens })}
                  >
                    {text.grant}
                  </Button>
                ),
              },
            ]}
          />
        )}
        {more > 0 && <p className="small soft">{text.teamsMore(more)}</p>}
      </div>
    </Panel>
  );
}
