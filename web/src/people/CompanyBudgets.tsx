import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { BudgetMeter } from '../data/BudgetMeter';
import { type Budget, budgetKey, type Company, readBudget, type Team, useTeams } from '../data/companies';
import { todayIn } from '../data/days';
import { QueryView } from '../data/ListView';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { BudgetForm } from './BudgetForm';
import { Denied } from './Denied';
import { useCompanyAccess } from './queries';

const step = 20;

/** CompanyBudgets shows and sets the budgets of all teams of a company. */
export function CompanyBudgets({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const teams = useTeams(company.id);
  const [most, setMost] = useState(step);
  const [editing, setEditing] = useState<{ team: Team; budget: Budget | null }>();

  return (
    <Panel title={text.budgets}>
      <Denied reason={access.refuse('MANAGE_BILLING')}>
        <div className="stack">
          <p className="soft">{text.budgetsWhy(company.time_zone)}</p>
          <QueryView query={teams} height={200}>
            {(rows) =>
              rows.length === 0 ? (
                <Empty title={text.teamsEmpty}>{text.teamsEmptyWhy}</Empty>
              ) : (
                rows
                  .slice(0, most)
                  .map((team) => (
                    <TeamRow
                      key={team.id}
                      team={team}
                      today={todayIn(company.time_zone)}
                      onEdit={(budget) => setEditing({ team, budget })}
                    />
                  ))
              )
            }
          </QueryView>
          {(teams.data?.length ?? 0) > most && (
            <div>
              <Button onClick={() => setMost(most + step)}>{shared.more}</Button>
            </div>
          )}
        </div>
      </Denied>
      {editing && <BudgetForm {...editing} onClose={() => setEditing(undefined)} />}
    </Panel>
  );
}

type RowProps = { team: Team; today: string; onEdit: (budget: Budget | null) => void };

function TeamRow({ team, today, onEdit }: RowProps) {
  const query = useQuery({ queryKey: budgetKey(team.id), queryFn: () => readBudget(team.id) });

  return (
    <div className="row">
      <div className="grow">
        <QueryView query={query} height={54}>
          {(budget) =>
            budget ? (
              <BudgetMeter budget={budget} name={team.name} today={today} />
            ) : (
              <span>
                <b>{team.name}</b> <span className="soft">{text.budgetNone}</span>
              </span>
            )
          }
        </QueryView>
      </div>
      {query.data !== undefined && (
        <Button
          small
          aria-label={query.data ? text.budgetChangeOf(team.name) : text.budgetSetFor(team.name)}
          onClick={() => onEdit(query.data)}
        >
          {query.data ? text.budgetChange : text.budgetSet}
        </Button>
      )}
    </div>
  );
}
