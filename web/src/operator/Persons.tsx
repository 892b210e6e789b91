import { useDeferredValue, useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text } from '../text/operator';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { SearchInput } from '../ui/Field';
import { formatAgo, formatDay, formatNumber } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { GrantDialog, type GrantTarget } from './GrantDialog';
import styles from './Status.module.css';

type Person = Schemas['OperatorPerson'];

/** Persons lists everybody who has an account, and grants tokens. */
export function Persons() {
  const [query, setQuery] = useState('');
  const [target, setTarget] = useState<GrantTarget>();
  const q = useDeferredValue(query.trim()) || undefined;
  const list = useList(['operator', 'people', q], async (cursor) =>
    dataOf(await api.GET('/operator/people', { params: { query: { q, limit: 50, cursor } } })),
  );
  const search = (
    <SearchInput
      className={styles.search}
      label={text.search}
      value={query}
      onChange={(event) => setQuery(event.target.value)}
    />
  );

  return (
    <Panel title={text.people} actions={search}>
      <ListView list={list} empty={<Empty title={text.peopleEmpty}>{text.peopleEmptyWhy}</Empty>}>
        {(rows) => (
          <Table
            label={text.people}
            rows={rows}
            keyOf={(person) => person.uid}
            columns={[
              { head: text.personEmail, cell: (person) => <PersonName person={person} /> },
              { head: text.personTokens, cell: (person) => formatNumber(person.balance.tokens), end: true },
              { head: text.personRuns, cell: (person) => text.atLeast(person.runs), end: true, wideOnly: true },
              {
                head: text.personSeen,
                cell: (person) => (person.last_seen ? formatAgo(person.last_seen) : shared.never),
                wideOnly: true,
              },
              { head: text.personSince, cell: (person) => formatDay(person.created), wideOnly: true },
              {
                head: shared.actions,
                quiet: true,
                end: true,
                cell: ({ uid, email, balance }) => (
                  <Button
                    small
                    icon="coins"
                    aria-label={text.grantTitle(email)}
                    onClick={() => setTarget({ id: uid, name: email, tokens: balance.tokens })}
                  >
                    {text.grant}
                  </Button>
                ),
              },
            ]}
          />
        )}
      </ListView>
      <GrantDialog target={target} onClose={() => setTarget(undefined)} />
    </Panel>
  );
}

function PersonName({ person }: { person: Person }) {
  return (
    <span className="row">
      {person.email}
      {person.operator && <Tag tone="hot">{text.personOperator}</Tag>}
      {person.suspended && <Tag tone="bad">{text.personSuspended}</Tag>}
      {!person.email_verified && <Tag tone="warn">{text.personUnverified}</Tag>}
    </span>
  );
}
