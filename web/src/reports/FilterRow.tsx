import { useEffect, useState } from 'react';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { useTeams } from '../data/companies';
import { text } from '../text/reports';
import { Button } from '../ui/Button';
import { SearchInput, Select } from '../ui/Field';
import { CsvMenu, GroupChoice } from './ReportHead';
import styles from './Reports.module.css';
import type { Report, ReportChange } from './report';

type Props = { report: Report; onChange: (change: ReportChange) => void };

/** FilterRow chooses the runs that a report is about: those of a team, a tool or a person. */
export function FilterRow({ report, onChange }: Props) {
  const { teamId } = useAccount();
  const { company, filters, group } = report;
  const teams = useTeams(company.id);
  const tools = useTools(teamId);
  const filtered = Object.values(filters).some(Boolean);

  return (
    <search className={styles.filters} aria-label={text.filters}>
      <div className={styles.groupSmall}>
        <GroupChoice group={group} onChange={onChange} />
        <CsvMenu report={report} />
      </div>
      <Choice
        label={text.anyTeam}
        value={filters.team_id}
        options={teams.data?.map((team) => ({ id: team.id, name: team.name })) ?? []}
        onChange={(of_team) => onChange({ of_team })}
      />
      <Choice
        label={text.anyTool}
        value={filters.tool_id}
        options={tools.data?.map((tool) => ({ id: tool.id, name: tool.name })) ?? []}
        onChange={(tool) => onChange({ tool })}
      />
      <PersonInput value={filters.email ?? ''} onChange={(person) => onChange({ person })} />
      {filtered && (
        <Button
          kind="bare"
          icon="close"
          onClick={() => onChange({ of_team: undefined, tool: undefined, person: undefined })}
        >
          {text.dropFilters}
        </Button>
      )}
      <span className="grow" />
      <span className="small soft">{text.zone(company.time_zone)}</span>
    </search>
  );
}

type ChoiceProps = {
  label: string;
  value: string | undefined;
  options: Array<{ id: string; name: string }>;
  onChange: (id: string | undefined) => void;
};

function Choice({ label, value, options, onChange }: ChoiceProps) {
  const known = options.some((option) => option.id === value);

  return (
    <Select
      className={styles.choice}
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => onChange(event.target.value || undefined)}
    >
      <option value="">{label}</option>
      {options.map((option) => (
        <option key={option.id} value={option.id}>
          {option.name}
        </option>
      ))}
      {value && !known && <option value={value}>{value}</option>}
    </Select>
  );
}

/** PersonInput asks for an e-mail address, and passes it on when it is complete or empty. */
function PersonInput({ value, onChange }: { value: string; onChange: (email: string | undefined) => void }) {
  const [typed, setTyped] = useState(value);
  const complete = /^\S+@\S+$/.test(typed);

  useEffect(() => setTyped(value), [value]);

  const pass = () => {
    if (typed === '' || complete) {
      onChange(typed || undefined);
    }
  };

  return (
    <SearchInput
      className={styles.person}
      label={text.person}
      inputMode="email"
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={pass}
      onKeyDown={(event) => {
        if (event.key === 'Enter') {
          pass();
        }
      }}
    />
  );
}
