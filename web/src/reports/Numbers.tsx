import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/reports';
import { Figures, type FigureValue } from '../ui/Figures';
import { formatDuration, formatNumber, formatPercent } from '../ui/format';
import { type Sums, useSums } from './queries';
import type { Report } from './report';
import { countDays } from './span';
import { nameSpan } from './spans';
import { changeOf, successOf } from './usage';

/** Numbers shows the four figures of a span, compared with the span before. */
export function Numbers({ report }: { report: Report }) {
  const sums = useSums(report);

  if (sums.isError && !sums.data) {
    return <ErrorFault error={sums.error} onRetry={() => void sums.refetch()} />;
  }
  return <Figures label={text.figures} figures={listFigures(report, sums.data)} />;
}

function listFigures(report: Report, sums: Sums | undefined): FigureValue[] {
  const before = nameSpan(report.before, report.today);
  if (!sums) {
    return [text.spent, text.runs, text.succeeded, text.time].map((label) => ({ label, value: undefined }));
  }

  const { now } = sums;
  const success = successOf(now);
  const successBefore = successOf(sums.before);
  const points = success !== undefined && successBefore !== undefined ? (success - successBefore) * 100 : undefined;
  const aDay = Math.round((now.runs / countDays(report.span)) * 10) / 10;

  return [
    {
      label: text.spent,
      value: formatNumber(now.tokens_charged),
      note: describeChange(now.tokens_charged, sums.before.tokens_charged, before),
    },
    {
      label: text.runs,
      value: formatNumber(now.runs),
      note: sums.people > 0 ? text.runsNote(aDay, sums.people, sums.morePeople) : text.runsADay(aDay),
    },
    {
      label: text.succeeded,
      value: success === undefined ? '–' : formatPercent(success),
      note: success === undefined ? text.noRuns : describePoints(points),
      bad: points !== undefined && points <= -0.05,
    },
    {
      label: text.time,
      value: formatDuration(now.generation_seconds),
      note: now.runs === 0 ? text.noRuns : text.aRun(formatDuration(now.generation_seconds / now.runs)),
    },
  ];
}

function describeChange(now: number, before: number, name: string): string {
  const change = changeOf(now, before);
  if (change === undefined) {
    return text.nothingBefore(name);
  }
  if (Math.abs(change) < 0.0005) {
    return text.same(name);
  }
  if (change >= 2) {
    return text.times(Math.round(change + 1), name);
  }
  return change > 0 ? text.more(change, name) : text.less(-change, name);
}

function describePoints(points: number | undefined): string | undefined {
  if (points === undefined) {
    return undefined;
  }
  const size = formatNumber(Math.round(Math.abs(points) * 10) / 10);
  if (size === '0') {
    return text.pointsSame;
  }
  return points > 0 ? text.pointsMore(size) : text.pointsLess(size);
}
