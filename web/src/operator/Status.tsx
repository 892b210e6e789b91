import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/operator';
import { Tag } from '../ui/Chip';
import { Facts, Figures, type FigureValue } from '../ui/Figures';
import { formatAgo, formatBytes, formatClock, formatDuration, formatNumber, formatTime } from '../ui/format';
import { Panel } from '../ui/Panel';
import { Progress } from '../ui/Progress';
import { Bone, Empty, Waiting } from '../ui/States';
import { Table } from '../ui/Table';
import styles from './Status.module.css';

type State = Schemas['OperatorStatus'];
type Engine = Schemas['OperatorEngine'];
type Node = Schemas['OperatorNode'];

const healthTones = { available: 'good', unavailable: 'bad', unserved: 'warn' } as const;

/** Status shows engines, queues and nodes, and reads them every five seconds while the page is seen. */
export function Status() {
  const status = useQuery({
    queryKey: ['operator', 'status'],
    refetchInterval: 5000,
    refetchIntervalInBackground: false,
    staleTime: 0,
    queryFn: async () => dataOf(await api.GET('/operator/status')),
  });
  const state = status.data;

  if (!state) {
    return status.isError ? (
      <ErrorFault error={status.error} onRetry={() => void status.refetch()} />
    ) : (
      <Waiting>
        <Bone height={112} />
        <Bone height={240} />
        <Bone height={160} />
      </Waiting>
    );
  }
  return (
    <>
      {status.isError && <ErrorFault error={status.error} onRetry={() => void status.refetch()} />}
      <Figures label={text.figures} figures={listFigures(state)} />
      <Panel
        title={text.engines}
        actions={<span className="small soft num">{text.asOf(formatClock(state.created))}</span>}
      >
        {state.engines.length === 0 ? (
          <Empty title={text.engineEmpty}>{text.engineEmptyWhy}</Empty>
        ) : (
          <EngineTable engines={state.engines} />
        )}
      </Panel>
      <Panel title={text.nodes}>
        <NodeTable nodes={state.nodes} />
      </Panel>
      <Panel title={text.service}>
        <Facts
          facts={[
            [text.version, state.version],
            [text.uptime, formatDuration(state.uptime_seconds)],
            [text.database, text.databases[state.database]],
            [text.files, `${text.fileStores[state.storage.kind]}, ${text.storageState(state.storage.state)}`],
          ]}
        />
      </Panel>
    </>
  );
}

/** listFigures returns the figures of the installation. */
export function listFigures(state: State): FigureValue[] {
  const capacity = state.engines.reduce((sum, engine) => sum + engine.capacity, 0);
  const longest = Math.max(0, ...state.engines.map((engine) => engine.oldest_wait_seconds ?? 0));
  const broken = state.engines.filter((engine) => engine.health !== 'available').length;
  const { used_bytes, limit_bytes } = state.storage;

  return [
    { label: text.running, value: formatNumber(state.running), note: text.runningOf(capacity) },
    {
      label: text.waiting,
      value: formatNumber(state.waiting),
      note: state.waiting > 0 ? text.waitingLongest(formatDuration(longest)) : text.waitingNone,
    },
    {
      label: text.engines,
      value: formatNumber(state.engines.length),
      note: broken > 0 ? text.enginesBad(broken) : text.enginesGood,
      bad: broken > 0,
    },
    {
      label: text.storage,
      value: formatBytes(used_bytes),
      note: limit_bytes === null ? text.storageNone : text.storageOf(formatBytes(limit_bytes)),
    },
  ];
}

function EngineTable({ engines }: { engines: Engine[] }) {
  return (
    <Table
      label={text.engines}
      rows={engines}
      keyOf={(engine) => engine.name}
      columns={[
        { head: text.engineName, cell: (engine) => <b>{engine.name}</b> },
        { head: text.engineHealth, cell: (engine) => <Health engine={engine} />, wrap: true },
        {
          head: text.engineRunning,
          cell: (engine) => (
            <div className={styles.load}>
              <span>{text.runningShare(engine.running, engine.capacity)}</span>
              <Progress
                label={text.loadOf(engine.name)}
                value={engine.capacity > 0 ? Math.min(1, engine.running / engine.capacity) : 0}
              />
            </div>
          ),
        },
        { head: text.engineWaiting, cell: (engine) => formatNumber(engine.waiting), end: true },
        {
          head: text.engineWait,
          cell: (engine) =>
            engine.oldest_wait_seconds === null
              ? '–'
              : text.waits(formatDuration(engine.median_wait_seconds ?? 0), formatDuration(engine.oldest_wait_seconds)),
        },
        {
          head: text.engineTools,
          cell: (engine) => (
            <span title={engine.tools.map((tool) => tool.name).join(', ')}>{text.toolCount(engine.tools.length)}</span>
          ),
        },
        { head: text.engineNodes, cell: (engine) => formatNumber(engine.nodes), end: true },
      ]}
    />
  );
}

function Health({ engine }: { engine: Engine }) {
  const error = engine.last_error;

  return (
    <>
      <Tag tone={healthTones[engine.health]}>{text.health[engine.health]}</Tag>{' '}
      {engine.unavailable_since && (
        <span className="small soft">{text.since(formatTime(engine.unavailable_since))} </span>
      )}
      {error && (
        <span className="small soft" title={error.message ?? undefined}>
          {text.lastError(error.code, formatAgo(error.created))}
        </span>
      )}
    </>
  );
}

function NodeTable({ nodes }: { nodes: Node[] }) {
  return (
    <Table
      label={text.nodes}
      rows={nodes}
      keyOf={(node) => node.id}
      columns={[
        {
          head: text.nodeId,
          cell: (node) => (
            <span className="row">
              <code>{node.id}</code>
              <Tag tone={node.live ? 'good' : 'warn'}>{node.live ? text.nodeLive : text.nodeGone}</Tag>
            </span>
          ),
        },
        { head: text.nodeRoles, cell: (node) => node.roles.join(', ') },
        {
          head: text.nodeEngines,
          wrap: true,
          cell: (node) =>
            node.engines
              .map((engine) => `${engine.name} ${text.runningShare(engine.running, engine.capacity)}`)
              .join(', ') || '–',
        },
        { head: text.nodeVersion, cell: (node) => node.version },
        { head: text.nodeSince, cell: (node) => formatTime(node.started) },
        { head: text.nodeSeen, cell: (node) => formatAgo(node.last_seen) },
      ]}
    />
  );
}
