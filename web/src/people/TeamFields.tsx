import { problemOf } from '../data/action';
import { type Company, useTeams } from '../data/companies';
import { text } from '../text/people';
import { Field, Select } from '../ui/Field';
import { rolesOfTeam } from './permissions';
import { useTeamRoles } from './queries';
import { RoleSelect } from './RoleSelect';

/** TeamChoice is the team that people join, and their role in it; without a team they join the company only. */
export type TeamChoice = { teamId: string; role: string };

/** noTeam is the choice to begin with. */
export const noTeam: TeamChoice = { teamId: '', role: 'member' };

/** bodyOfTeam writes a choice as the API takes it. */
export function bodyOfTeam({ teamId, role }: TeamChoice): { team_id: string | null; team_role: string | null } {
  return { team_id: teamId || null, team_role: teamId ? role : null };
}

type Props = {
  company: Company;
  label: string;
  /** What the choice of no team is called. */
  none: string;
  value: TeamChoice;
  error: unknown;
  onChange: (value: TeamChoice) => void;
};

/** TeamFields ask for a team of a company, and for the role in it. */
export function TeamFields({ company, label, none, value, error, onChange }: Props) {
  const teams = useTeams(company.id);
  const roles = useTeamRoles(value.teamId || undefined);

  return (
    <>
      <Field label={label} problem={problemOf(error, 'team_id')}>
        {(attributes) => (
          <Select
            {...attributes}
            value={value.teamId}
            onChange={(event) => onChange({ ...value, teamId: event.target.value })}
          >
            <option value="">{none}</option>
            {teams.data?.map((team) => (
              <option key={team.id} value={team.id}>
                {team.name}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {value.teamId && roles.data && (
        <RoleSelect
          label={text.teamRole}
          roles={rolesOfTeam(roles.data)}
          value={value.role}
          problem={problemOf(error, 'team_role')}
          onChange={(role) => onChange({ ...value, role })}
        />
      )}
    </>
  );
}
