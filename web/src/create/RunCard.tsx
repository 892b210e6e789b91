import { useQuery } from '@tanstack/react-query';
import { memo, useEffect, useState } from 'react';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { RunSteps } from '../data/RunSteps';
import { previewKey, type Run } from '../data/runs';
import { ToolPicture } from '../data/ToolPicture';
import { text } from '../text/create';
import { Button, IconButton } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { formatAgo } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Menu } from '../ui/Menu';
import { Progress } from '../ui/Progress';
import { useCreatePage } from './context';
import styles from './Feed.module.css';
import { ResultTile } from './ResultTile';
import { type Result, resultsOf } from './results';
import { nameOf, partOf, stateWords } from './words';

type Props = {
  run: Run;
  /** Whether this is the newest run, whose pictures are loaded before all others. */
  first: boolean;
  /** The result of this run that is chosen, and the one that Tab leads to. */
  chosenId: string | undefined;
  focusId: string | undefined;
  onOpen: (result: Result) => void;
};

/** RunCard is one run in the feed: what was asked, how it goes or what came of it, and what to do next. */
export const RunCard = memo(function RunCard({ run, first, chosenId, focusId, onOpen }: Props) {
  const now = useNow(run.status === 'pending' ? 1000 : 30_000);
  const name = nameOf(run);
  const parts = [
    run.prompt ? text.unnamed(run.tool_name) : undefined,
    ...stateWords(run, now),
    run.status === 'succeeded' && run.seed > 0 ? text.seed(run.seed) : undefined,
    run.status === 'pending' && run.stage === 'running' ? undefined : formatAgo(run.created, now),
  ];

  return (
    <article className={styles.run} aria-busy={run.status === 'pending'} aria-label={name}>
      <header className={styles.runHead}>
        <div className="grow">
          <h2 className={styles.name} title={name}>
            {name}
          </h2>
          <p className={styles.meta}>
            {parts.filter(Boolean).map((part) => (
              <span key={part} className="num">
                {part}
              </span>
            ))}
          </p>
        </div>
        <RunActions run={run} />
      </header>
      <RunBody run={run} first={first} chosenId={chosenId} focusId={focusId} onOpen={onOpen} />
      {run.steps && <RunSteps run={run} open={run.status === 'pending' ? true : undefined} />}
    </article>
  );
});

function RunActions({ run }: { run: Run }) {
  const page = useCreatePage();
  const [stopping, setStopping] = useState(false);
  const [first] = resultsOf(run);

  if (run.status === 'pending') {
    return (
      <Button
        small
        icon="stop"
        disabled={stopping}
        onClick={() => {
          setStopping(true);
          page.cancel(run);
          setTimeout(() => setStopping(false), 8000);
        }}
      >
        {stopping ? text.cancelling : text.cancel}
      </Button>
    );
  }
  return (
    <div className={styles.acts}>
      <Button
        kind="bare"
        small
        icon="repeat"
        aria-label={text.newSeed}
        title={text.newSeedHint}
        onClick={() => page.newSeed(run)}
      >
        <span className="hide-small">{text.newSeed}</span>
      </Button>
      <Button kind="bare" small icon="copy" className="hide-small" onClick={() => page.takeInputs(run)}>
        {text.useInputs}
      </Button>
      <IconButton
        small
        icon="code"
        label={text.codeOfRun}
        className="hide-small"
        onClick={() => page.open({ kind: 'code', run })}
      />
      <Menu
        small
        label={text.moreOf(nameOf(run))}
        items={[
          { label: text.runAgain, icon: 'redo', onSelect: () => page.runAgain(run) },
          { label: text.newSeed, icon: 'repeat', onSelect: () => page.newSeed(run) },
          { label: text.useInputs, icon: 'copy', onSelect: () => page.takeInputs(run) },
          { label: text.codeOfRun, icon: 'code', onSelect: () => page.open({ kind: 'code', run }) },
          ...(first
            ? ([
                'line',
                { label: text.details, icon: 'info', onSelect: () => page.open({ kind: 'details', id: first.id }) },
                { label: text.pin, icon: 'pin', onSelect: () => page.open({ kind: 'pin', result: first }) },
              ] as const)
            : []),
        ]}
      />
    </div>
  );
}

function RunBody({ run, first, chosenId, focusId, onOpen }: Props) {
  const page = useCreatePage();

  if (run.status === 'pending') {
    return run.stage === 'running' ? <UnfinishedResults run={run} /> : <InQueue run={run} />;
  }
  if (run.status === 'failed') {
    return (
      <div className={styles.fail}>
        <Icon name="alert" />
        <div className="grow">
          <p className="strong">{run.error?.message ?? text.failed}</p>
          <p className="small soft">
            {text.whatToDo(run.error?.code ?? '', run.error?.retryable ?? false)} {text.costNothing}
          </p>
        </div>
        <Button small onClick={() => page.takeInputs(run)}>
          {text.editAndRetry}
        </Button>
      </div>
    );
  }
  if (run.status === 'cancelled') {
    return <p className="soft">{text.cancelled}</p>;
  }
  const results = resultsOf(run);
  const gone = run.outputs.length - results.length;
  const notes = [...new Set(results.map((result) => result.note).filter((note) => note !== null))];

  return (
    <>
      {results.length > 0 && (
        <div className={styles.shots}>
          {results.map((result) => (
            <ResultTile
              key={result.id}
              result={result}
              first={first}
              chosen={result.id === chosenId}
              focusable={result.id === focusId}
              onOpen={onOpen}
            />
          ))}
        </div>
      )}
      {notes.map((note) => (
        <p key={note} className={styles.remark}>
          <Icon name="info" small />
          {note}
        </p>
      ))}
      {run.outputs.length < run.num_results && (
        <p className={styles.remark}>{text.fewer(run.outputs.length, run.num_results)}</p>
      )}
      {gone > 0 && <p className={styles.remark}>{text.deletedResults(gone)}</p>}
    </>
  );
}

function InQueue({ run }: { run: Run }) {
  const { teamId } = useAccount();
  const tool = useTools(teamId).data?.find((one) => one.id === run.tool_id);

  return (
    <div className={styles.queue} role="status">
      {tool && <ToolPicture tool={tool} />}
      <div className="grow">
        <p className="strong">{text.queuePlace(run.queue_position)}</p>
        <p className="small soft">{text.queueHint(run.estimated_seconds)}</p>
      </div>
      {run.queue_position !== null && <Tag>{run.queue_position}</Tag>}
    </div>
  );
}

/** UnfinishedResults keeps the place of the results of a running run, with the newest unfinished picture and the progress. */
function UnfinishedResults({ run }: { run: Run }) {
  const preview = useQuery<string | null>({
    queryKey: previewKey(run.request_id),
    queryFn: () => null,
    enabled: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const count = run.num_results;
  const working = Math.min(count - 1, Math.floor((run.progress ?? 0) * count));

  return (
    <div className={styles.shots}>
      {Array.from({ length: count }, (_, at) => (
        <div key={at} className={styles.tile}>
          {preview.data && at === working && <img className={styles.preview} src={preview.data} alt="" />}
          {at >= working && (
            <div className={styles.progress}>
              <Progress
                label={text.result(text.progressOf(nameOf(run)), at + 1, count)}
                value={at > working ? 0 : partOf(run.progress, at, count)}
              />
            </div>
          )}
        </div>
      ))}
    </div>
  );
}

/** useNow returns the time, and renders again every so often. */
function useNow(every: number): number {
  const [now, setNow] = useState(Date.now);

  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);

  return now;
}
