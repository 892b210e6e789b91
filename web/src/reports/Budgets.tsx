import { useQueries } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError } from '../api/errors';
import { useAccount } from '../data/account';
import { BudgetMeter } from '../data/BudgetMeter';
import { budgetKey, readBudget, useTeams } from '../data/companies';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/reports';
import { Button, ButtonLink } from '../ui/Button';
import { Panel } from '../ui/Panel';
import { Bone, Empty, Waiting } from '../ui/States';
import type { Report } from './report';

const step = 12;

/** Budgets shows how the budgets of a company's teams stand this month. */
export function Budgets({ report }: { report: Report }) {
  const { linkTo } = useAccount();
  const [most, setMost] = useState(step);
  const { company, filters } = report;
  const teams = useTeams(company.id);
  const all = teams.data?.filter((team) => !filters.team_id || team.id === filters.team_id) ?? [];
  const shown = all.slice(0, most);
  const budgets = useQueries({
    queries: shown.map((team) => ({ queryKey: budgetKey(team.id), queryFn: () => readBudget(team.id) })),
  });

  const refused = budgets.some((one) => one.error instanceof ApiError && one.error.status === 403);
  const failed = budgets.find((one) => one.isError && !(one.error instanceof ApiError && one.error.status === 403));
  const without = shown.filter((_, at) => budgets[at]?.data === null).map((team) => team.name);
  const waiting = teams.isPending || budgets.some((one) => one.isPending);
  const canSet = company.permissions.includes('MANAGE_BILLING');

  const actions = canSet ? (
    <ButtonLink kind="bare" small href={linkTo(`/people/${company.id}/budgets`)}>
      {text.budgetSet}
    </ButtonLink>
  ) : (
    <span className="small soft">{text.thisMonth}</span>
  );

  return (
    <Panel title={text.budgets} actions={actions}>
      <div className="stack">
        {shown.map((team, at) => {
          const budget = budgets[at]?.data;
          return budget && <BudgetMeter key={team.id} budget={budget} name={team.name} today={report.today} />;
        })}
        {waiting && (
          <Waiting>
            <Bone height={52} />
            <Bone height={52} />
          </Waiting>
        )}
        {failed && <ErrorFault error={failed.error} onRetry={() => void failed.refetch()} />}
        {refused && <p className="small soft">{text.budgetRefused}</p>}
        {!waiting && !refused && without.length === shown.length && <Empty title={text.budgetNone} />}
        {without.length > 0 && without.length < shown.length && (
          <p className="small soft">{text.budgetWithout(without.join(', '))}</p>
        )}
        {all.length > most && (
          <Button small onClick={() => setMost(most + step)}>
            {text.budgetMore(Math.min(step, all.length - most))}
          </Button>
        )}
      </div>
    </Panel>
  );
}
