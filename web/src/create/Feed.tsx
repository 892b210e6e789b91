import {
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { useConnection } from '../data/live';
import { usePreferences } from '../data/preferences';
import { type Run, useRuns } from '../data/runs';
import { text } from '../text/create';
import { Button, IconButton } from '../ui/Button';
import { Segments } from '../ui/Segments';
import { Bone, Empty, Waiting } from '../ui/States';
import { useCreatePage } from './context';
import styles from './Feed.module.css';
import { focusResult, handleResultKey } from './keys';
import { RunCard } from './RunCard';
import { type Result, resultsOf } from './results';

export type Filter = 'all' | 'running' | 'failed';

/** useFeed reads the runs of a filter. Failed runs have a list of their own; running ones are always among the newest. */
export function useFeed(filter: Filter) {
  const { teamId } = useAccount();
  const connection = useConnection();
  const all = useRuns(teamId, { poll: !connection.open });
  const failed = useRuns(teamId, { status: 'failed', enabled: filter === 'failed' });
  const runs = useMemo(() => all.data?.pages.flatMap((page) => page.data) ?? [], [all.data]);
  const running = useMemo(() => runs.filter((run) => run.status === 'pending'), [runs]);
  const failedRuns = useMemo(() => failed.data?.pages.flatMap((page) => page.data) ?? [], [failed.data]);
  const failedCount = runs.filter((run) => run.status === 'failed').length;
  const refetchFailed = failed.refetch;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a run that fails now belongs into the list.
  useEffect(() => {
    if (filter === 'failed') {
      void refetchFailed();
    }
  }, [failedCount, filter]);

  const list = filter === 'failed' ? failed : all;
  return { list, runs: filter === 'all' ? runs : filter === 'running' ? running : failedRuns, running, failedCount };
}

type Props = {
  feed: ReturnType<typeof useFeed>;
  filter: Filter;
  onFilter: (filter: Filter) => void;
  /** Shown in place of the runs while there are none. */
  welcome: ReactNode;
  onOpen: (result: Result) => void;
};

/** Feed lists the runs of the account, the newest first, with everything that can be done with them. */
export function Feed({ feed, filter, onFilter, welcome, onOpen }: Props) {
  const { list } = feed;
  // Cards are drawn in small steps, between which the page answers.
  const runs = useDeferredValue(feed.runs);
  const page = useCreatePage();
  const { letterKeys } = usePreferences();
  const results = useMemo(() => new Map(runs.flatMap(resultsOf).map((result) => [result.id, result])), [runs]);
  const chosen = page.chosenId !== undefined && results.has(page.chosenId) ? page.chosenId : undefined;
  const focusId = chosen ?? results.keys().next().value;

  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const target = event.target as HTMLElement;
    const id = target.matches('[data-open]') ? target.closest<HTMLElement>('[data-result]')?.dataset.result : undefined;
    const result = id === undefined ? undefined : results.get(id);
    if (result) {
      handleResultKey(event, result, page, letterKeys, (next) => {
        page.choose(next);
        focusResult(next);
      });
    }
  };

  const empty = list.isSuccess && feed.runs.length === 0;
  const waiting = list.isPending || (runs.length === 0 && feed.runs.length > 0);
  return (
    <section className={styles.feed} aria-label={text.feed} onKeyDown={onKeyDown}>
      <FeedHead feed={feed} filter={filter} onFilter={onFilter} />
      <div className={styles.runs}>
        {empty && filter === 'all' && welcome}
        {list.isError && runs.length === 0 && <ErrorFault error={list.error} onRetry={() => void list.refetch()} />}
        {waiting && filter !== 'running' && <FeedBones />}
        {empty && filter !== 'all' && (
          <Empty
            title={filter === 'running' ? text.noneRunning : text.noneFailed}
            actions={<Button onClick={() => onFilter('all')}>{text.showAll}</Button>}
          >
            {filter === 'running' ? text.noneRunningHint : text.noneFailedHint}
          </Empty>
        )}
        {runs.map((run, at) => (
          <RunCard
            key={run.request_id}
            run={run}
            first={at === 0}
            chosenId={hasOutput(run, chosen) ? chosen : undefined}
            focusId={hasOutput(run, focusId) ? focusId : undefined}
            onOpen={onOpen}
          />
        ))}
        {filter !== 'running' && <More list={list} />}
      </div>
    </section>
  );
}

const hasOutput = (run: Run, id: string | undefined) => run.outputs.some((output) => output.id === id);

type FeedHeadProps = Pick<Props, 'feed' | 'filter' | 'onFilter'>;

function FeedHead({ feed, filter, onFilter }: FeedHeadProps) {
  const page = useCreatePage();
  const comparing = page.marked !== undefined;

  return (
    <header className={styles.head}>
      <h1>{text.title}</h1>
      <div className={styles.filters}>
        <Segments
          label={text.show}
          value={filter}
          options={[
            { value: 'all', label: text.all },
            { value: 'running', label: text.runningFilter(feed.running.length) },
            { value: 'failed', label: text.failedFilter(feed.failedCount) },
          ]}
          onChange={onFilter}
        />
      </div>
      <span className="grow" />
      <Button
        kind="bare"
        icon="compare"
        on={comparing}
        aria-pressed={comparing}
        aria-label={comparing ? text.compareStop : text.compare}
        onClick={() => page.mark('')}
      >
        <span className="hide-small">{comparing ? text.comparePick(page.marked?.length ?? 0) : text.compare}</span>
      </Button>
      <IconButton icon="code" label={text.code} onClick={() => page.open({ kind: 'code' })} />
    </header>
  );
}

function FeedBones() {
  return (
    <Waiting>
      {[4, 4].map((count, at) => (
        <div key={at} className={styles.run}>
          <div className={styles.bones}>
            <Bone height={20} />
            <Bone height={14} />
          </div>
          <div className={styles.shots}>
            {Array.from({ length: count }, (_, place) => (
              <Bone key={place} ratio={1} />
            ))}
          </div>
        </div>
      ))}
    </Waiting>
  );
}

/** More reads the next page of runs when the end of the list comes near. */
function More({ list }: { list: ReturnType<typeof useRuns> }) {
  const mark = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(false);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const read = useCallback(() => void fetchNextPage(), [fetchNextPage]);
  const long = (list.data?.pages.length ?? 0) > 1;

  useEffect(() => {
    const element = mark.current;
    if (!element) {
      return;
    }
    const observer = new IntersectionObserver(([entry]) => setSeen(entry?.isIntersecting ?? false), {
      rootMargin: '900px',
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (seen && hasNextPage && !isFetchingNextPage && !isFetchNextPageError) {
      read();
    }
  }, [seen, hasNextPage, isFetchingNextPage, isFetchNextPageError, read]);

  return (
    <div ref={mark} className={styles.end}>
      {hasNextPage && (
        <Button disabled={isFetchingNextPage} onClick={read}>
          {text.moreRuns}
        </Button>
      )}
      {!hasNextPage && long && list.isSuccess && <p className="small soft">{text.endOfRuns}</p>}
    </div>
  );
}
