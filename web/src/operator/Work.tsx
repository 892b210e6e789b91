import { useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { useAction } from '../data/action';
import { FormDialog } from '../data/FormDialog';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text } from '../text/operator';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { formatAgo, formatNumber } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Progress } from '../ui/Progress';
import { Segments } from '../ui/Segments';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import styles from './Status.module.css';

type Run = Schemas['OperatorRun'];
type Filter = '' | Schemas['OperatorRunFilter'];

const filters: Filter[] = ['', 'waiting', 'running'];
const workKey = ['operator', 'runs'];

/** Work lists the runs of all accounts that have not ended, and cancels them. */
export function Work() {
  const [filter, setFilter] = useState<Filter>('');
  const [ending, setEnding] = useState<Run>();
  const list = useList(
    [...workKey, filter],
    async (cursor) => {
      const query = { status: filter || undefined, limit: 50, cursor };
      return dataOf(await api.GET('/operator/runs', { params: { query } }));
    },
    { refetchInterval: 5000 },
  );
  const choice = (
    <Segments
      label={text.workFilter}
      value={filter}
      options={filters.map((value) => ({ value, label: value ? text.workStatuses[value] : text.workAll }))}
      onChange={setFilter}
    />
  );

  return (
    <Panel title={text.work} actions={choice}>
      <ListView list={list} empty={<Empty title={text.workEmpty} />}>
        {(rows) => (
          <Table
            label={text.work}
            rows={rows}
            keyOf={(run) => run.request_id}
            columns={[
              { head: text.workTool, cell: (run) => run.tool_name ?? text.unknownTool },
              { head: text.workStatus, cell: (run) => <RunStatus run={run} /> },
              { head: text.workPerson, cell: (run) => run.email || text.deleted },
              { head: text.workAccount, cell: nameAccount, wideOnly: true },
              { head: text.engineName, cell: (run) => run.engine, wideOnly: true },
              { head: text.workAge, cell: (run) => formatAgo(run.created) },
              { head: text.workTokens, cell: (run) => formatNumber(run.tokens_held), end: true, wideOnly: true },
              {
                head: shared.actions,
                quiet: true,
                end: true,
                cell: (run) => (
                  <Button
                    small
                    kind="danger"
                    icon="stop"
                    aria-label={text.cancelOne(run.tool_name ?? text.unknownTool, run.email || text.deleted)}
                    disabled={run.cancel_requested}
                    onClick={() => setEnding(run)}
                  >
                    {text.cancel}
                  </Button>
                ),
              },
            ]}
          />
        )}
      </ListView>
      <CancelDialog run={ending} onClose={() => setEnding(undefined)} />
    </Panel>
  );
}

function nameAccount(run: Run): string {
  const { account } = run;
  if (account.kind === 'PERSONAL') {
    return account.name || text.deleted;
  }
  return account.company_name ? `${account.company_name}, ${account.name}` : account.name;
}

function RunStatus({ run }: { run: Run }) {
  return (
    <div className={styles.load}>
      <span className="row">
        <Tag tone={run.status === 'running' ? 'hot' : undefined}>
          {run.cancel_requested ? text.cancelling : text.workStatuses[run.status]}
        </Tag>
        {run.attempts > 1 && <span className="small soft">{text.workAttempts(run.attempts)}</span>}
      </span>
      {run.status === 'running' && (
        <Progress label={text.progressOf(run.tool_name ?? text.unknownTool)} value={run.progress} />
      )}
    </div>
  );
}

function CancelDialog({ run, onClose }: { run: Run | undefined; onClose: () => void }) {
  const cancel = useAction(
    (one: Run) => api.POST('/operator/runs/{request_id}/cancel', { params: { path: { request_id: one.request_id } } }),
    { done: () => text.cancelled, refresh: [workKey, ['operator', 'status']], onDone: onClose },
  );

  return (
    <FormDialog
      open={run !== undefined}
      title={text.cancelTitle}
      submit={text.cancelRun}
      back={text.keepRun}
      action={cancel}
      danger
      onSubmit={() => run && cancel.run(run)}
      onClose={onClose}
    >
      <p>{text.cancelWhy(run?.tool_name ?? text.unknownTool, run?.email || text.deleted)}</p>
    </FormDialog>
  );
}
