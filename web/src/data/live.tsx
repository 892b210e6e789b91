import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from 'react';
import type { Connection, ServerEvent } from '../api/events';
import { shareEvents } from '../api/live';
import { addressOf } from '../routes';
import { type Account, meKey, useAccount } from './account';
import { rereadQueries } from './reread';
import { previewKey, putRun, type Run, runsKey } from './runs';

type Listener = (event: ServerEvent) => void;

type LiveState = {
  connection: Connection;
  /** Calls the listener with each event of the account's stream, until the returned function is called. */
  subscribe: (listener: Listener) => () => void;
};

const LiveContext = createContext<LiveState>({ connection: { open: true }, subscribe: () => () => {} });

/** LiveProvider follows the account's events, and keeps runs and balance in the cache as they are now. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const { teamId, account } = useAccount();
  const cache = useQueryClient();
  const listeners = useRef(new Set<Listener>());
  const [connection, setConnection] = useState<Connection>({ open: true });

  useEffect(() => {
    const stop = new AbortController();

    const onEvent = (event: ServerEvent) => {
      switch (event.event) {
        case 'run': {
          const run = JSON.parse(event.data) as Run;
          putRun(cache, teamId, run);
          if (run.status !== 'pending') {
            cache.removeQueries({ queryKey: previewKey(run.request_id) });
            void rereadQueries(cache, { queryKey: ['library'] });
          }
          break;
        }
        case 'preview': {
          const preview = JSON.parse(event.data) as { request_id: string; url: string };
          cache.setQueryData(previewKey(preview.request_id), preview.url);
          break;
        }
        case 'balance': {
          const balance = JSON.parse(event.data) as Account['balance'];
          cache.setQueryData<{ accounts: Account[] }>(
            meKey,
            (me) =>
              me && {
                ...me,
                accounts: me.accounts.map((one) => (one.id === account.id ? { ...one, balance } : one)),
              },
          );
          void rereadQueries(cache, { queryKey: ['ledger'] });
          break;
        }
        case 'reset':
          void rereadQueries(cache, { queryKey: runsKey(teamId) });
          void rereadQueries(cache, { queryKey: meKey });
          void rereadQueries(cache, { queryKey: ['ledger'] });
          break;
      }
      for (const listener of listeners.current) {
        listener(event);
      }
    };

    shareEvents(
      addressOf('/api/v2/events', { team_id: teamId }),
      { onEvent, onConnection: setConnection },
      stop.signal,
    );
    return () => stop.abort();
  }, [teamId, account.id, cache]);

  const state = useMemo<LiveState>(
    () => ({
      connection,
      subscribe: (listener) => {
        listeners.current.add(listener);
        return () => listeners.current.delete(listener);
      },
    }),
    [connection],
  );

  return <LiveContext value={state}>{children}</LiveContext>;
}

/** useConnection returns whether the service is reached, and when the next attempt is made if not. */
export function useConnection(): Connection {
  return useContext(LiveContext).connection;
}

/** useLiveEvents calls a function with each event of the account's stream. */
export function useLiveEvents(onEvent: Listener): void {
  const { subscribe } = useContext(LiveContext);
  const latest = useRef(onEvent);
  latest.current = onEvent;

  useEffect(() => subscribe((event) => latest.current(event)), [subscribe]);
}
