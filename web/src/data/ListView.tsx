import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { text } from '../text/shared';
import { Button } from '../ui/Button';
import { Bone, Waiting } from '../ui/States';
import { ErrorFault } from './ErrorFault';
import type { List } from './list';

type ListViewProps<T> = {
  list: List<T>;
  /** What to show if the list has no rows. */
  empty: ReactNode;
  /** The number of grey rows while the list is loading. */
  bones?: number;
  children: (rows: T[]) => ReactNode;
};

/** ListView shows a list of the service: while it loads, when it is empty, why it cannot be read, and a button for more. */
export function ListView<T>({ list, empty, bones = 4, children }: ListViewProps<T>) {
  if (!list.rows) {
    return list.error ? <ErrorFault error={list.error} onRetry={list.retry} /> : <Bones count={bones} />;
  }
  if (list.rows.length === 0) {
    return empty;
  }
  return (
    <div className="stack">
      {children(list.rows)}
      {list.error !== null && <ErrorFault error={list.error} onRetry={list.retry} />}
      {list.hasMore && (
        <div>
          <Button onClick={list.readMore} disabled={list.loadingMore}>
            {list.loadingMore ? text.loadingMore : text.more}
          </Button>
        </div>
      )}
    </div>
  );
}

function Bones({ count }: { count: number }) {
  return (
    <Waiting>
      {Array.from({ length: count }, (_, index) => (
        <Bone key={index} height={34} />
      ))}
    </Waiting>
  );
}

type QueryViewProps<T> = {
  query: UseQueryResult<T>;
  /** The height in pixels of what is loading. */
  height?: number;
  children: (data: T) => ReactNode;
};

/** QueryView shows one answer of the service, while it loads, or why it cannot be read. */
export function QueryView<T>({ query, height = 120, children }: QueryViewProps<T>) {
  if (query.data !== undefined) {
    return children(query.data);
  }
  if (query.isError) {
    return <ErrorFault error={query.error} onRetry={() => void query.refetch()} />;
  }
  return (
    <Waiting>
      <Bone height={height} />
    </Waiting>
  );
}
