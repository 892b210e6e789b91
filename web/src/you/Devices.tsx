import { useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { goToSignIn, signOut } from '../api/session';
import { useAction } from '../data/action';
import { FormDialog } from '../data/FormDialog';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { text } from '../text/you';
import { Button, ButtonLink } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { formatAgo, formatDay } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Table } from '../ui/Table';
import { nameAgent } from './agents';

type Device = Schemas['Device'];

const devicesKey = ['devices'];

/** Devices lists where the person is signed in, and signs one of them or all of them out. */
export function Devices() {
  const list = useList(devicesKey, async (cursor) =>
    dataOf(await api.GET('/devices', { params: { query: { limit: 50, cursor } } })),
  );
  const [leaving, setLeaving] = useState<Device>();
  const [everywhere, setEverywhere] = useState(false);

  const actions = (
    <>
      <ButtonLink href="/password" external>
        {text.changePassword}
      </ButtonLink>
      <Button kind="danger" icon="signout" onClick={() => setEverywhere(true)}>
        {text.everywhere}
      </Button>
    </>
  );

  return (
    <Panel title={text.devices} actions={actions}>
      <div className="stack">
        <p className="soft">{text.devicesWhy}</p>
        <ListView list={list} empty={<Empty title={text.deviceEmpty} />}>
          {(rows) => (
            <Table
              label={text.devices}
              rows={rows}
              keyOf={(row) => row.id}
              columns={[
                { head: text.deviceName, cell: (row) => <DeviceName device={row} />, wrap: true },
                { head: text.deviceUsed, cell: (row) => formatAgo(row.last_used) },
                { head: text.deviceAddress, cell: (row) => row.address, wideOnly: true },
                { head: text.deviceSince, cell: (row) => formatDay(row.created), wideOnly: true },
                {
                  head: text.deviceActions,
                  quiet: true,
                  end: true,
                  cell: (row) => (
                    <Button
                      small
                      kind="danger"
                      aria-label={row.current ? text.revokeThis : text.revokeOne(nameAgent(row.name))}
                      onClick={() => (row.current ? void signOut() : setLeaving(row))}
                    >
                      {text.revoke}
                    </Button>
                  ),
                },
              ]}
            />
          )}
        </ListView>
      </div>
      <LeaveDialog device={leaving} onClose={() => setLeaving(undefined)} />
      <EverywhereDialog open={everywhere} onClose={() => setEverywhere(false)} />
    </Panel>
  );
}

function DeviceName({ device }: { device: Device }) {
  return (
    <span title={device.name}>
      {nameAgent(device.name)}{' '}
      <Tag tone={device.current ? 'good' : undefined}>
        {device.current ? text.deviceThis : (device.plugin_kind ?? text.deviceKinds[device.kind] ?? device.kind)}
      </Tag>
    </span>
  );
}

function LeaveDialog({ device, onClose }: { device: Device | undefined; onClose: () => void }) {
  const leave = useAction(
    (one: Device) =>
      one.kind === 'BROWSER'
        ? api.DELETE('/sessions/{session_id}', { params: { path: { session_id: one.id } } })
        : api.POST('/auth/device/revoke', { params: { header: { 'X-Device-Id': one.id } } }),
    { done: () => text.revoked, refresh: [devicesKey], onDone: onClose },
  );

  return (
    <FormDialog
      open={device !== undefined}
      title={text.revokeTitle(nameAgent(device?.name ?? ''))}
      submit={text.revoke}
      action={leave}
      danger
      onSubmit={() => device && leave.run(device)}
      onClose={onClose}
    >
      <p>{text.revokeWhy}</p>
    </FormDialog>
  );
}

function EverywhereDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const leave = useAction(() => api.POST('/auth/sign-out-everywhere'), {
    onDone: goToSignIn,
  });

  return (
    <FormDialog
      open={open}
      title={text.everywhereTitle}
      submit={text.everywhere}
      action={leave}
      danger
      onSubmit={() => leave.run()}
      onClose={onClose}
    >
      <p>{text.everywhereWhy}</p>
    </FormDialog>
  );
}
