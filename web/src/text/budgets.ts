// The words about budgets of teams.

import { formatNumber } from '../ui/format';

const countTokens = (count: number) => `${formatNumber(count)} ${count === 1 ? 'token' : 'tokens'}`;

export const text = {
  of: (spent: number, tokens: number) => `${formatNumber(spent)} of ${formatNumber(tokens)}`,
  meter: (team: string) => `Budget of ${team}`,
  spent: (percent: number, left: number) => {
    const days = left === 0 ? 'the last day of the month' : left === 1 ? 'one day left' : `${left} days left`;
    return `${formatNumber(percent)} % spent, ${days}.`;
  },
  told: (percent: number) => `Managers were told at ${percent} %.`,
  course: (tokens: number) => `On course for ${countTokens(tokens)} by the end of the month.`,
  fullHard: 'Spent. Runs are refused until next month.',
  full: 'Spent. Runs go on; this budget only tells.',
};
