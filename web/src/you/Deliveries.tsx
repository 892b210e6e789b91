import { useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { useAccount } from '../data/account';
import { useAction } from '../data/action';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text as shared } from '../text/shared';
import { text } from '../text/you';
import { Button } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { Dialog } from '../ui/Dialog';
import { Select } from '../ui/Field';
import { formatAgo, formatTime } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';

type Delivery = Schemas['WebhookDelivery'];
type State = Schemas['WebhookState'];

/** No event tells of an attempt, so the lists are read again while they are shown. */
const attemptsChange = { refetchInterval: 5000 };

const states: State[] = ['pending', 'delivered', 'failing', 'exhausted', 'gone'];
const tones = { pending: undefined, delivered: 'good', failing: 'warn', exhausted: 'bad', gone: 'bad' } as const;

/** answerOf says how the receiving server answered an attempt. */
export function answerOf(attempt: { status_code: number | null; error: string | null }): string {
  const reason = attempt.error && (text.deliveryErrors[attempt.error] ?? attempt.error);

  return [attempt.status_code, reason].filter(Boolean).join(', ');
}

/** describeNext says when a delivery is tried next; one whose time has come waits for a free worker only. */
const describeNext = (time: string) =>
  new Date(time).getTime() <= Date.now() ? text.deliveryDue : text.deliveryNext(formatAgo(time));

/** Deliveries lists the webhooks of runs that have ended, with their attempts, and sends one again. */
export function Deliveries() {
  const { teamId } = useAccount();
  const [status, setStatus] = useState<State | ''>('');
  const [open, setOpen] = useState<Delivery>();
  const key = ['webhook-deliveries', teamId ?? 'personal'];
  const readPage = async (cursor: string | undefined) => {
    const query = { team_id: teamId, status: status || undefined, limit: 24, cursor };
    return dataOf(await api.GET('/webhook-deliveries', { params: { query } }));
  };
  const list = useList([...key, status], readPage, attemptsChange);
  const send = useAction(
    (delivery: Delivery) =>
      api.POST('/generate/{request_id}/webhook-attempts/redeliver', {
        params: { path: { request_id: delivery.request_id }, query: { team_id: teamId } },
      }),
    { done: () => text.redelivered, refresh: [key, ['webhook-attempts']], toastRefusal: true },
  );

  const filter = (
    <Select
      aria-label={text.deliveryFilter}
      value={status}
      onChange={(event) => setStatus(states.find((one) => one === event.target.value) ?? '')}
    >
      <option value="">{text.deliveryAll}</option>
      {states.map((one) => (
        <option key={one} value={one}>
          {text.deliveryStates[one]}
        </option>
      ))}
    </Select>
  );
  const empty = status ? (
    <Empty title={text.deliveriesNone} actions={<Button onClick={() => setStatus('')}>{text.deliveryAll}</Button>} />
  ) : (
    <Empty title={text.deliveriesEmpty}>{text.deliveriesEmptyWhy}</Empty>
  );

  return (
    <Panel title={text.deliveries} actions={filter}>
      <ListView list={list} empty={empty}>
        {(rows) => (
          <Table
            label={text.deliveries}
            rows={rows}
            keyOf={(row) => row.request_id}
            columns={[
              { head: text.deliveryTime, cell: (row) => formatTime(row.created) },
              { head: text.deliveryHost, cell: (row) => row.host },
              {
                head: text.deliveryStatus,
                cell: (row) => <Tag tone={tones[row.status]}>{text.deliveryStates[row.status]}</Tag>,
              },
              {
                head: text.deliveryAnswer,
                cell: (row) => (
                  <>
                    {answerOf(row)}
                    {row.next_attempt && <span className="small soft"> {describeNext(row.next_attempt)}</span>}
                  </>
                ),
              },
              { head: text.deliveryTries, cell: (row) => row.attempts, end: true },
              {
                head: shared.actions,
                quiet: true,
                end: true,
                cell: (row) => (
                  <span className="row">
                    <span className="grow" />
                    <Button
                      small
                      kind="bare"
                      aria-label={text.attemptsTo(row.host, formatTime(row.created))}
                      onClick={() => setOpen(row)}
                    >
                      {text.attempts}
                    </Button>
                    <Button
                      small
                      icon="send"
                      aria-label={send.wait > 0 ? undefined : text.redeliverTo(row.host, formatTime(row.created))}
                      disabled={send.busy || send.wait > 0}
                      onClick={() => send.run(row)}
                    >
                      {send.wait > 0 ? shared.waitSeconds(send.wait) : text.redeliver}
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      <Dialog
        open={open !== undefined}
        onClose={() => setOpen(undefined)}
        title={text.attemptsOf(open?.host ?? '')}
        kind="wide"
      >
        {open && <Attempts requestId={open.request_id} />}
      </Dialog>
    </Panel>
  );
}

function Attempts({ requestId }: { requestId: string }) {
  const { teamId } = useAccount();
  const readPage = async (cursor: string | undefined) => {
    const query = { team_id: teamId, limit: 50, cursor };
    return dataOf(
      await api.GET('/generate/{request_id}/webhook-attempts', { params: { path: { request_id: requestId }, query } }),
    );
  };
  const list = useList(['webhook-attempts', requestId], readPage, attemptsChange);

  return (
    <ListView list={list} empty={<p className="soft">{text.attemptsEmpty}</p>} bones={2}>
      {(rows) => (
        <Table
          label={text.attempts}
          rows={rows}
          keyOf={(row) => row.id}
          columns={[
            { head: text.attemptTime, cell: (row) => formatTime(row.at) },
            { head: text.attemptAnswer, cell: answerOf },
            { head: text.attemptLength, cell: (row) => text.milliseconds(row.duration_ms), end: true },
          ]}
        />
      )}
    </ListView>
  );
}
