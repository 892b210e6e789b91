import { api, dataOf, type Schemas } from '../api/client';
import { type Company, useTeams } from '../data/companies';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { useSearchValues } from '../data/search';
import { text } from '../text/people';
import { Button } from '../ui/Button';
import { Field, Select, TextInput } from '../ui/Field';
import { formatTime } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { boundsOf } from './auditBounds';
import { Denied } from './Denied';
import { keys, useCompanyAccess, useMemberNames } from './queries';
import styles from './RoleMatrix.module.css';

type Entry = Schemas['AuditRecord'];
type Names = ReturnType<typeof useMemberNames>;

const kinds = Object.keys(text.auditKinds);

/** Audit lists what was done in a company, the newest first; its filters stand in the address. */
export function Audit({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const refused = access.refuse('MANAGE_MEMBERS');
  const names = useMemberNames(company.id, !refused);
  const [search, setSearch] = useSearchValues();
  const filters = {
    act: search.get('act') ?? undefined,
    uid: search.get('person') ?? undefined,
    ...boundsOf(search.get('from') ?? '', search.get('until') ?? ''),
  };
  const list = useList(
    [...keys.audit(company.id), filters],
    async (cursor) =>
      dataOf(
        await api.GET('/companies/{company_id}/audit', {
          params: { path: { company_id: company.id }, query: { ...filters, limit: 50, cursor } },
        }),
      ),
    { enabled: !refused },
  );
  const drop = () => setSearch({ act: undefined, person: undefined, from: undefined, until: undefined });
  const empty = (
    <Empty title={text.auditEmpty} actions={<Button onClick={drop}>{text.auditDrop}</Button>}>
      {text.auditEmptyWhy}
    </Empty>
  );

  return (
    <Panel title={text.audit}>
      <Denied reason={refused}>
        <div className="stack">
          <Filters names={names} />
          <ListView list={list} empty={empty} bones={8}>
            {(rows) => <AuditTable entries={rows} names={names} company={company} />}
          </ListView>
        </div>
      </Denied>
    </Panel>
  );
}

function Filters({ names }: { names: Names }) {
  const [search, setSearch] = useSearchValues();
  const value = (name: string) => search.get(name) ?? '';
  const change = (name: string) => (event: { target: { value: string } }) =>
    setSearch({ [name]: event.target.value || undefined });

  return (
    <search className={styles.filters}>
      <Field label={text.auditKind}>
        {(attributes) => (
          <Select {...attributes} value={value('act')} onChange={change('act')}>
            <option value="">{text.auditAllKinds}</option>
            {kinds.map((kind) => (
              <option key={kind} value={kind}>
                {text.auditKinds[kind]}
              </option>
            ))}
            {value('act') && !kinds.includes(value('act')) && <option value={value('act')}>{value('act')}</option>}
          </Select>
        )}
      </Field>
      <Field label={text.auditPerson}>
        {(attributes) => (
          <Select {...attributes} value={value('person')} onChange={change('person')}>
            <option value="">{text.auditAnyone}</option>
            {names.members?.map((member) => (
              <option key={member.uid} value={member.uid}>
                {member.email}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label={text.auditFrom}>
        {(attributes) => <TextInput type="date" {...attributes} value={value('from')} onChange={change('from')} />}
      </Field>
      <Field label={text.auditTo}>
        {(attributes) => <TextInput type="date" {...attributes} value={value('until')} onChange={change('until')} />}
      </Field>
    </search>
  );
}

type TableProps = { entries: Entry[]; names: Names; company: Company };

function AuditTable({ entries, names, company }: TableProps) {
  const [, setSearch] = useSearchValues();
  const teams = useTeams(company.id);
  const teamOf = (detail: string) => teams.data?.find((team) => team.id === detail)?.name ?? detail;

  return (
    <Table
      label={text.audit}
      rows={entries}
      keyOf={(entry) => String(entry.seq)}
      columns={[
        { head: text.auditTime, cell: (entry) => formatTime(entry.at) },
        {
          head: text.auditAct,
          cell: (entry) => (
            <Button small kind="bare" className={styles.act} onClick={() => setSearch({ act: entry.act })}>
              {entry.act}
            </Button>
          ),
        },
        { head: text.auditActor, cell: (entry) => (entry.actor_id ? names.nameOf(entry.actor_id) : text.auditNobody) },
        { head: text.auditAbout, cell: (entry) => entry.person_id && names.nameOf(entry.person_id) },
        {
          head: text.auditDetails,
          wrap: true,
          cell: (entry) => (
            <span className={styles.details}>
              {Object.entries(entry.details).map(([name, detail]) => (
                <span key={name}>
                  <span className="soft">{name}</span> {teamOf(detail) || '–'}
                </span>
              ))}
            </span>
          ),
        },
        { head: text.auditAddress, cell: (entry) => entry.address ?? '–' },
      ]}
    />
  );
}
