import { useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../api/client';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { text } from '../text/library';
import { formatBytes, formatSeconds, formatTime } from '../ui/format';
import styles from './Inspector.module.css';
import type { Item } from './items';

/** useRun reads the run of a result: what it cost and who started it. */
function useRun(requestId: string | null) {
  const { teamId } = useAccount();

  return useQuery({
    queryKey: ['run', requestId],
    enabled: requestId !== null,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const params = { path: { request_id: requestId ?? '' }, query: { team_id: teamId } };
      return dataOf(await api.GET('/generate/{request_id}', { params }));
    },
  });
}

function formatOf(item: Item): string {
  const type = (item.mime_type.split('/')[1] ?? item.mime_type).toUpperCase();
  const file = `${type}, ${formatBytes(item.size_bytes)}`;

  return item.width && item.height ? `${text.dimensions(item.width, item.height)} · ${file}` : file;
}

// The kinds of files that can hold no marks about their origin.
const unmarked = ['image/heic', 'image/heif', 'model/gltf-binary', 'text/plain'];

/** Facts lists what is known about an item: its tool, size, seed, time and cost. */
export function Facts({ item, inputs }: { item: Item; inputs: Schemas['Inputs'] | undefined }) {
  const { teamId, account, me } = useAccount();
  const tools = useTools(teamId);
  const run = useRun(item.request_id);
  const isResult = item.kind === 'LIBRARY_REF';

  const seed = run.data?.seed ?? inputs?.seed;
  const byMe = run.data?.uid === me.user.uid;
  const made = formatTime(item.created);
  const cost = run.data?.tokens_charged;
  const rows: Array<[string, string | null | undefined]> = [
    [text.facts.tool, tools.data?.find((tool) => tool.id === item.tool_id)?.name ?? run.data?.tool_name],
    [text.facts.size, formatOf(item)],
    [text.facts.length, item.duration_seconds === null ? undefined : formatSeconds(item.duration_seconds)],
    [text.facts.seed, typeof seed === 'number' ? String(seed) : undefined],
    [isResult ? text.facts.made : text.facts.uploaded, byMe ? text.madeByYou(made) : made],
    [
      text.facts.paidBy,
      cost === undefined || cost === null
        ? undefined
        : cost === 0
          ? text.free(account.label)
          : text.paid(account.label, text.price(cost)),
    ],
    [text.facts.marked, isResult && !unmarked.includes(item.mime_type) ? text.marks : undefined],
  ];

  return (
    <dl className={styles.facts}>
      {rows.map(
        ([name, value]) =>
          value && (
            <div key={name} style={{ display: 'contents' }}>
              <dt>{name}</dt>
              <dd className="num">{value}</dd>
            </div>
          ),
      )}
      {item.request_id && (
        <>
          <dt>{text.facts.run}</dt>
          <dd className={styles.run}>{item.request_id}</dd>
        </>
      )}
    </dl>
  );
}
