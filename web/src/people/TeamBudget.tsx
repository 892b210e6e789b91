import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { BudgetMeter } from '../data/BudgetMeter';
import { budgetKey, type Company, readBudget, type Team } from '../data/companies';
import { todayIn } from '../data/days';
import { QueryView } from '../data/ListView';
import { text } from '../text/people';
import { Facts } from '../ui/Figures';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { Empty } from '../ui/States';
import { BudgetForm, RemoveBudgetDialog } from './BudgetForm';
import { Denied } from './Denied';
import { useTeamAccess } from './queries';

/** TeamBudget shows the budget of a team, and sets or removes it. */
export function TeamBudget({ company, team }: { company: Company; team: Team }) {
  const access = useTeamAccess(company, team);
  const sees = access.has('MANAGE_BILLING') || access.manages;
  const refused = access.refuse('MANAGE_BILLING');
  const [editing, setEditing] = useState(false);
  const [leaving, setLeaving] = useState<Team>();
  const query = useQuery({ queryKey: budgetKey(team.id), enabled: sees, queryFn: () => readBudget(team.id) });

  const actions = (
    <>
      <ReasonButton kind="main" reason={refused} onClick={() => setEditing(true)}>
        {query.data ? text.budgetChange : text.budgetSet}
      </ReasonButton>
      {query.data && (
        <ReasonButton kind="danger" reason={refused} onClick={() => setLeaving(team)}>
          {text.budgetRemove}
        </ReasonButton>
      )}
    </>
  );

  return (
    <Panel title={text.budget} actions={actions}>
      <Denied reason={sees ? undefined : refused}>
        <div className="stack">
          <p className="soft">{text.budgetsWhy(company.time_zone)}</p>
          <QueryView query={query} height={60}>
            {(budget) =>
              budget ? (
                <>
                  <BudgetMeter budget={budget} name={team.name} today={todayIn(company.time_zone)} />
                  <Facts
                    facts={[
                      [text.budgetMonth, budget.month],
                      [text.budgetHard, budget.hard ? text.budgetRefused : text.budgetTells],
                      [text.budgetHook, budget.webhook_url ?? text.budgetHookNone],
                    ]}
                  />
                </>
              ) : (
                <Empty title={text.budgetNone}>{text.budgetNoneWhy}</Empty>
              )
            }
          </QueryView>
        </div>
      </Denied>
      {editing && <BudgetForm team={team} budget={query.data ?? null} onClose={() => setEditing(false)} />}
      <RemoveBudgetDialog team={leaving} onClose={() => setLeaving(undefined)} />
    </Panel>
  );
}
