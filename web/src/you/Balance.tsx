import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { meKey, useAccount } from '../data/account';
import { useAction } from '../data/action';
import { ListView, QueryView } from '../data/ListView';
import { useList } from '../data/list';
import { text as shared } from '../text/shared';
import { text } from '../text/you';
import { Bars } from '../ui/Bars';
import { Button } from '../ui/Button';
import { Figures } from '../ui/Figures';
import { formatBytes, formatNumber, formatTime } from '../ui/format';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { Meter } from '../ui/Progress';
import { Segments } from '../ui/Segments';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { dayLabel, dayTitle, entryName, type Measure, sumDays } from './ledger';

/** useDays reads the sums of the last 30 days of the account. */
function useDays() {
  const { teamId } = useAccount();

  return useQuery({
    queryKey: ['ledger', teamId ?? 'personal', 'days'],
    queryFn: async () => {
      const query = { team_id: teamId, group_by: 'day' as const };
      return dataOf(await api.GET('/ledger', { params: { query } })).days;
    },
  });
}

/** Balance shows the tokens and the storage of the account, the tokens of the last 30 days, and every entry. */
export function Balance() {
  const { account } = useAccount();
  const days = useDays();
  const sums = days.data && sumDays(days.data);
  const { balance, storage } = account;
  const held = balance.held > 0 ? text.held(balance.held) : text.noneHeld;

  const figures = [
    {
      label: text.toSpend,
      value: formatNumber(balance.tokens),
      note: balance.free_allowance_left > 0 ? text.freeLeft(balance.free_allowance_left) : held,
    },
    {
      label: text.spentMonth,
      value: sums && formatNumber(sums.spent),
      note: sums && text.perDay(Math.round((sums.spent / Math.max(1, days.data?.length ?? 1)) * 10) / 10),
    },
    {
      label: text.receivedMonth,
      value: sums && formatNumber(sums.received),
      note: sums && text.entryCount(sums.entries),
    },
    {
      label: text.storage,
      value: formatBytes(storage.used_bytes),
      note: storage.limit_bytes ? text.storageOf(storage.limit_bytes) : text.storageFree,
    },
  ];

  return (
    <>
      <TopUp />
      <Figures
        label={text.figures}
        figures={days.isError ? figures.filter((one) => one.value !== undefined) : figures}
      />
      {storage.limit_bytes !== null && storage.used_bytes > storage.limit_bytes * 0.8 && (
        <Panel title={text.storage}>
          <div className="stack">
            <Meter label={text.storage} value={storage.used_bytes} max={storage.limit_bytes} />
            <p className="small soft">{text.storageMeter(storage.used_bytes, storage.limit_bytes)}</p>
          </div>
        </Panel>
      )}
      <History days={days} />
      <Entries />
    </>
  );
}

/** TopUp offers the free tokens of the operator to the personal account, where there are some. */
function TopUp() {
  const { me, account } = useAccount();
  const offer = me.user.top_up;
  const claim = useAction(async () => dataOf(await api.POST('/me/top-up')), {
    done: (result) => text.topUpDone(result.balance.tokens),
    refresh: [meKey, ['ledger']],
    toastRefusal: true,
  });

  if (!offer.available || account.kind !== 'PERSONAL') {
    return null;
  }
  const button = (
    <Button kind="main" icon="coins" disabled={claim.busy || claim.wait > 0} onClick={() => claim.run()}>
      {claim.wait > 0 ? shared.waitSeconds(claim.wait) : text.topUp(offer.tokens)}
    </Button>
  );
  return (
    <Notice icon="coins" tone="good" actions={button}>
      {text.topUpOffer(offer.tokens)}
    </Notice>
  );
}

function History({ days }: { days: ReturnType<typeof useDays> }) {
  const [measure, setMeasure] = useState<Measure>('spent');
  const [asTable, setAsTable] = useState(false);
  const color = ({ spent: 1, received: 3, balance: 2 } as const)[measure];

  const actions = (
    <>
      <Segments
        label={text.measure}
        value={measure}
        options={(['spent', 'received', 'balance'] as const).map((value) => ({ value, label: text.measures[value] }))}
        onChange={setMeasure}
      />
      <Button kind="bare" small onClick={() => setAsTable(!asTable)}>
        {asTable ? text.asBars : text.asTable}
      </Button>
    </>
  );

  return (
    <Panel title={text.history} actions={actions}>
      <QueryView query={days} height={250}>
        {(rows) => (
          <Bars
            label={text.historyLabel(text.measures[measure])}
            labels={rows.map((one) => dayLabel(one.day))}
            titles={rows.map((one) => dayTitle(one.day))}
            series={[{ name: text.measures[measure], color, values: rows.map((one) => Math.max(0, one[measure])) }]}
            asTable={asTable}
          />
        )}
      </QueryView>
    </Panel>
  );
}

function Entries() {
  const { teamId } = useAccount();
  const list = useList(['ledger', teamId ?? 'personal', 'entries'], async (cursor) =>
    dataOf(await api.GET('/ledger', { params: { query: { team_id: teamId, limit: 24, cursor } } })),
  );

  return (
    <Panel title={text.entries}>
      <ListView list={list} empty={<Empty title={text.entriesEmpty}>{text.entriesEmptyWhy}</Empty>}>
        {(rows) => (
          <Table
            label={text.entries}
            rows={rows}
            keyOf={(row) => row.id}
            columns={[
              { head: text.entryTime, cell: (row) => formatTime(row.created) },
              {
                head: text.entryWhat,
                wrap: true,
                cell: (row) => (
                  <>
                    {entryName(row)}
                    {row.note && <span className="small soft"> {row.note}</span>}
                  </>
                ),
              },
              {
                head: text.entryTokens,
                end: true,
                cell: (row) => (row.tokens > 0 ? `+${formatNumber(row.tokens)}` : formatNumber(row.tokens)),
              },
            ]}
          />
        )}
      </ListView>
    </Panel>
  );
}
