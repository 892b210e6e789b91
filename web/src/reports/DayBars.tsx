import { useState } from 'react';
import { ErrorFault } from '../data/ErrorFault';
import { QueryView } from '../data/ListView';
import { text } from '../text/reports';
import { Bars, Legend } from '../ui/Bars';
import { Button } from '../ui/Button';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { useDays } from './queries';
import type { Report } from './report';
import { listDays } from './span';
import { labelDays, nameSpan, titleDay } from './spans';
import { stackSeries, type UsageRow } from './usage';

type Props = { report: Report; ranked: UsageRow[] | undefined; error: unknown };

/** DayBars shows the tokens of each day, divided by the dearest groups. */
export function DayBars({ report, ranked, error }: Props) {
  const [asTable, setAsTable] = useState(false);
  const query = useDays(report, ranked);
  const days = listDays(report.span);
  const series = query.data ? stackSeries(days, query.data.total, query.data.named, text.others) : [];

  const actions = (
    <>
      <Legend series={series} />
      <Button kind="bare" small onClick={() => setAsTable(!asTable)}>
        {asTable ? text.asBars : text.asTable}
      </Button>
    </>
  );

  return (
    <Panel title={text.byDay} actions={actions}>
      {error && !ranked ? (
        <ErrorFault error={error} />
      ) : (
        <QueryView query={query} height={250}>
          {() =>
            series.length === 0 ? (
              <Empty title={text.empty}>{text.emptyWhy}</Empty>
            ) : (
              <Bars
                label={text.byDayLabel(text.groups[report.group], nameSpan(report.span, report.today))}
                labels={labelDays(days)}
                titles={days.map(titleDay)}
                series={series}
                asTable={asTable}
              />
            )
          }
        </QueryView>
      )}
    </Panel>
  );
}
