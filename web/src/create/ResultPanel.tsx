import { Suspense } from 'react';
import { useAccount } from '../data/account';
import { useTool } from '../data/catalog';
import { useSaveAsFlow } from '../data/flows';
import { leavesOf, type Value } from '../form/fields';
import { wordsOf } from '../form/summary';
import { text } from '../text/create';
import { text as flowText } from '../text/flows';
import { Button } from '../ui/Button';
import { formatBytes, formatSeconds, formatTime } from '../ui/format';
import { Picture } from '../ui/Picture';
import { Player } from '../ui/Player';
import { part } from '../ui/part';
import { callOf } from './call';
import { useCreatePage } from './context';
import styles from './ResultPanel.module.css';
import type { Result } from './results';
import { nameOf } from './words';

const RunCode = part(() => import('./RunCode'));

/** ResultPanel shows one result with what can be done with it, its facts, and the code that makes it. */
export function ResultPanel({ result }: { result: Result }) {
  const page = useCreatePage();
  const { teamId } = useAccount();
  const tool = useTool(result.run.tool_id, teamId).data;
  const favourite = page.favourites.has(result.id);
  const { saveAsFlow, drafting } = useSaveAsFlow();

  return (
    <div className={styles.panel}>
      <div className={styles.big}>
        <Big result={result} />
      </div>
      <h2 className={styles.name}>{nameOf(result.run)}</h2>
      <div className={styles.pair}>
        <Button kind="main" icon="wand" onClick={() => page.takeAsInput(result)}>
          {text.useAsInput}
        </Button>
        <Button icon="download" onClick={() => page.download(result)}>
          {text.download}
        </Button>
        <Button icon="compare" onClick={() => page.mark(result.id)}>
          {text.compare}
        </Button>
        <Button icon="board" onClick={() => page.open({ kind: 'pin', result })}>
          {text.pin}
        </Button>
        <Button
          icon="heart"
          iconFull={favourite}
          on={favourite}
          aria-pressed={favourite}
          onClick={() => page.setFavourite(result.id, !favourite)}
        >
          {text.favourite}
        </Button>
        <Button icon="flow" disabled={drafting} onClick={() => saveAsFlow(result.id)}>
          {flowText.saveAsFlow}
        </Button>
        <Button icon="trash" kind="danger" onClick={() => page.remove(result)}>
          {text.delete}
        </Button>
      </div>
      <Facts result={result} />
      {tool && (
        <Suspense>
          <RunCode call={callOf(tool, result.run.inputs ?? {}, result.run.num_results, teamId)} language="curl" />
        </Suspense>
      )}
    </div>
  );
}

function Big({ result }: { result: Result }) {
  const page = useCreatePage();
  if (result.url && (result.type === 'VID' || result.type === 'AUDIO')) {
    return <Player kind={result.type} src={result.url} poster={result.preview_url} label={result.label} />;
  }
  const ratio = result.width && result.height ? result.width / result.height : 1;

  return (
    <button
      type="button"
      className={styles.enlarge}
      aria-label={text.showLarge}
      title={text.showLarge}
      onClick={() => page.open({ kind: 'viewer', id: result.id })}
    >
      <Picture
        key={result.id}
        src={result.type === 'IMG' ? result.url : result.thumb_url}
        alt={result.label}
        blurhash={result.blurhash}
        ratio={Math.max(0.6, ratio)}
        fit={ratio < 0.6 ? 'contain' : 'cover'}
        eager
      />
    </button>
  );
}

const toldElsewhere = ['PROMPT', 'SEED', 'WIDTH_HEIGHT'];

function Facts({ result }: { result: Result }) {
  const { me, teamId } = useAccount();
  const { run } = result;
  const tool = useTool(run.tool_id, teamId).data;
  const payer = me.accounts.find((one) => one.id === run.team_id) ?? me.accounts[0];
  const fields = leavesOf(tool?.fields ?? []).filter(
    (field) => !toldElsewhere.includes(field.type) && run.inputs?.[field.fieldKey] !== undefined,
  );

  const facts: Array<[string, string]> = [[text.facts.tool, text.unnamed(run.tool_name)]];
  for (const field of fields) {
    facts.push([field.label, wordsOf(field, run.inputs?.[field.fieldKey] as Value)]);
  }
  const bytes = formatBytes(result.size_bytes);
  facts.push([
    text.facts.size,
    result.width && result.height ? text.sizeFact(result.width, result.height, bytes) : bytes,
  ]);
  if (result.duration_seconds !== null) {
    facts.push([text.facts.length, formatSeconds(result.duration_seconds)]);
  }
  facts.push([text.facts.seed, String(run.seed)], [text.facts.made, formatTime(run.created)]);
  if (run.started && run.finished) {
    facts.push([text.facts.took, text.span((Date.parse(run.finished) - Date.parse(run.started)) / 1000)]);
  }
  facts.push([text.facts.paidBy, `${payer?.label ?? ''} · ${text.cost(run.tokens_charged + run.free_allowance_used)}`]);
  if (result.note) {
    facts.push([text.facts.note, result.note]);
  }

  return (
    <dl className={styles.facts}>
      {facts.map(([name, value], at) => (
        <div key={`${name} ${at}`}>
          <dt>{name}</dt>
          <dd className="num">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
