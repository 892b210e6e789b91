import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text } from '../text/reports';
import { Tag } from '../ui/Chip';
import { formatDuration, formatNumber } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { readRuns } from './queries';
import type { Report } from './report';

const tones = { succeeded: 'good', failed: 'bad', cancelled: undefined } as const;

/** RunTable lists the runs of a report, the newest first, without what was made. */
export function RunTable({ report }: { report: Report }) {
  const { time_zone } = report.company;
  const list = useList(['report', 'runs', report.query], (cursor) => readRuns(report.query, cursor));
  const time = new Intl.DateTimeFormat(undefined, {
    timeZone: time_zone,
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  });

  return (
    <Panel title={text.runList}>
      <ListView list={list} empty={<Empty title={text.empty}>{text.emptyWhy}</Empty>}>
        {(rows) => (
          <Table
            label={text.runList}
            rows={rows}
            keyOf={(row) => row.request_id}
            columns={[
              { head: text.runEnded, cell: (row) => time.format(new Date(row.finished)) },
              { head: text.runTool, cell: (row) => row.tool_name ?? text.unnamed.tool },
              { head: text.runPerson, cell: (row) => row.person },
              { head: text.runTeam, cell: (row) => row.team_name },
              {
                head: text.runStatus,
                cell: (row) => (
                  <span className="row" title={row.error_code ?? undefined}>
                    <Tag tone={tones[row.status]}>{text.statuses[row.status]}</Tag>
                    {row.error_code && <span className="small soft">{row.error_code}</span>}
                  </span>
                ),
              },
              { head: text.runTime, cell: (row) => formatDuration(row.generation_seconds), end: true },
              { head: text.runTokens, cell: (row) => formatNumber(row.tokens_charged), end: true },
            ]}
          />
        )}
      </ListView>
    </Panel>
  );
}
