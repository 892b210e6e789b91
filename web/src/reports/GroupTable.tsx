import type { UseQueryResult } from '@tanstack/react-query';
import { useState } from 'react';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { QueryView } from '../data/ListView';
import type { AllRows } from '../data/list';
import { text } from '../text/reports';
import { Button } from '../ui/Button';
import { formatNumber, formatPercent } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Progress } from '../ui/Progress';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { filterOf } from './queries';
import styles from './Reports.module.css';
import type { Report, ReportChange } from './report';
import { idOf, nameOf, successOf, type UsageRow } from './usage';

type Props = {
  report: Report;
  groups: UseQueryResult<AllRows<UsageRow>>;
  onChange: (change: ReportChange) => void;
};

const few = 6;

/** GroupTable lists the groups of a report, the dearest first; the name of one filters the report by it. */
export function GroupTable({ report, groups, onChange }: Props) {
  const [all, setAll] = useState(false);
  const { group } = report;
  const count = groups.data?.rows.length ?? 0;

  const actions = count > few && (
    <Button kind="bare" small onClick={() => setAll(!all)}>
      {all ? text.fewRows : text.allRows(count)}
    </Button>
  );

  return (
    <Panel title={text.by[group]} actions={actions}>
      <QueryView query={groups} height={260}>
        {({ rows, complete }) =>
          rows.length === 0 ? (
            <Empty title={text.empty}>{text.emptyWhy}</Empty>
          ) : (
            <div className="stack">
              <Table
                label={text.by[group]}
                rows={all ? rows : rows.slice(0, few)}
                keyOf={(row) => idOf(row, group)}
                columns={[
                  {
                    head: text.groups[group],
                    cell: (row) => <GroupName row={row} report={report} onChange={onChange} />,
                  },
                  { head: text.rowRuns, cell: (row) => formatNumber(row.runs), end: true },
                  { head: text.rowSucceeded, cell: formatSuccess, end: true, wideOnly: true },
                  { head: text.rowTokens, cell: (row) => formatNumber(row.tokens_charged), end: true },
                  {
                    head: text.rowShare,
                    quiet: true,
                    wideOnly: true,
                    cell: (row) => (
                      <div className={styles.share}>
                        <Progress
                          label={text.shareOf(nameOf(row, group, text.unnamed[group]))}
                          value={row.tokens_charged / Math.max(1, rows[0]?.tokens_charged ?? 1)}
                        />
                      </div>
                    ),
                  },
                ]}
              />
              {!complete && <p className="small soft">{text.cut(rows.length)}</p>}
            </div>
          )
        }
      </QueryView>
    </Panel>
  );
}

function formatSuccess(row: UsageRow): string {
  const success = successOf(row);

  return success === undefined ? '–' : formatPercent(success);
}

function GroupName({ row, report, onChange }: { row: UsageRow } & Omit<Props, 'groups'>) {
  const { teamId } = useAccount();
  const tools = useTools(teamId);
  const { group } = report;
  const name = nameOf(row, group, text.unnamed[group]);
  const filter = filterOf(row, group);
  const picture = group === 'tool' && tools.data?.find((tool) => tool.id === row.tool_id)?.avatar_url;

  return (
    <button
      type="button"
      className={styles.name}
      title={filter && text.filterBy(name)}
      disabled={!filter}
      onClick={() => onChange({ ...changeOfFilter(filter), group: nextGroup(group) })}
    >
      {picture && <img src={picture} alt="" />}
      {name}
    </button>
  );
}

/** changeOfFilter writes a filter as the address has it; other filters stay. */
function changeOfFilter(filter: ReturnType<typeof filterOf>): ReportChange {
  const change: ReportChange = {};
  if (filter?.team_id) {
    change.of_team = filter.team_id;
  }
  if (filter?.tool_id) {
    change.tool = filter.tool_id;
  }
  if (filter?.email) {
    change.person = filter.email;
  }
  return change;
}

/** nextGroup returns what to divide by once a report is about one group only. */
const nextGroup = (group: Report['group']) => (group === 'tool' ? 'person' : 'tool');
