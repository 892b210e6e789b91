import { useEffect, useRef } from 'react';
import { useLiveEvents } from '../data/live';

const refreshDelay = 800;

/** useRefreshAfterRuns reads the list anew after runs have ended; several that end together count as one. */
export function useRefreshAfterRuns(refetch: () => unknown, enabled: boolean): void {
  const timer = useRef(0);

  useEffect(() => () => clearTimeout(timer.current), []);

  useLiveEvents((event) => {
    const ended = event.event === 'run' && (JSON.parse(event.data) as { status: string }).status === 'succeeded';
    if (enabled && (ended || event.event === 'reset')) {
      clearTimeout(timer.current);
      timer.current = window.setTimeout(() => void refetch(), refreshDelay);
    }
  });
}
