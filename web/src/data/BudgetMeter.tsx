import { text } from '../text/budgets';
import { Meter } from '../ui/Progress';
import styles from './BudgetMeter.module.css';
import type { Budget } from './companies';

/** describeBudget says how a budget stands on a day such as 2026-11-16 of the company's time zone. */
export function describeBudget(budget: Budget, today: string): string {
  const [year = 0, month = 1, day = 1] = today.split('-').map(Number);
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate();

  if (budget.percent >= 100) {
    return budget.hard ? text.fullHard : text.full;
  }
  if (budget.percent >= 80) {
    const told = budget.told_percent > 0 ? ` ${text.told(budget.told_percent)}` : '';
    return `${text.spent(budget.percent, days - day)}${told}`;
  }
  return text.course(Math.round((budget.spent / day) * days));
}

/** BudgetMeter shows how much of a team's budget is spent, with marks where managers are told. */
export function BudgetMeter({ budget, name, today }: { budget: Budget; name: string; today: string }) {
  return (
    <div className={styles.budget}>
      <div className={styles.head}>
        <span className="strong">{name}</span>
        <span className="num soft">{text.of(budget.spent, budget.tokens)}</span>
      </div>
      <Meter label={text.meter(name)} value={budget.spent} max={budget.tokens} marks={[0.5, 0.8]} />
      <p className="small soft">{describeBudget(budget, today)}</p>
    </div>
  );
}
