import { useCallback, useEffect, useRef, useState } from 'react';
import { uploadFile } from '../api/client';
import { ApiError } from '../api/errors';
import { messageOfUpload } from '../data/uploads';
import { text } from '../text/library';
import { type Item, itemOfUpload } from './items';

/** Sending is a file on its way to the service, or the reason why it did not get there. */
export type Sending = {
  number: number;
  file: File;
  /** How much of it is sent, from 0 to 1. */
  part: number;
  waiting: boolean;
  problem: string | undefined;
};

const atOnce = 3;

/** useSending sends files, three at a time, and calls a function with each that is stored. */
export function useSending(teamId: string | undefined, onStored: (item: Item) => void, onEnd: (count: number) => void) {
  const [list, setList] = useState<Sending[]>([]);
  const waiting = useRef<Sending[]>([]);
  const running = useRef(new Map<number, AbortController>());
  const numbers = useRef(0);
  const stored = useRef(0);
  const latest = useRef({ teamId, onStored, onEnd });
  latest.current = { teamId, onStored, onEnd };

  useEffect(() => {
    const all = running.current;
    return () => {
      for (const stop of all.values()) {
        stop.abort();
      }
    };
  }, []);

  const change = useCallback((number: number, next: Partial<Sending>) => {
    setList((all) => all.map((one) => (one.number === number ? { ...one, ...next } : one)));
  }, []);

  const sendNext = useCallback(async (): Promise<void> => {
    const next = running.current.size < atOnce ? waiting.current.shift() : undefined;
    if (!next) {
      if (running.current.size === 0 && stored.current > 0) {
        latest.current.onEnd(stored.current);
        stored.current = 0;
      }
      return;
    }

    const stop = new AbortController();
    running.current.set(next.number, stop);
    change(next.number, { waiting: false, problem: undefined, part: 0 });
    try {
      const onProgress = (part: number) => change(next.number, { part });
      const upload = await uploadFile(next.file, latest.current.teamId, onProgress, stop.signal);
      stored.current += 1;
      latest.current.onStored(itemOfUpload(upload));
      setList((all) => all.filter((one) => one.number !== next.number));
    } catch (error) {
      if (stop.signal.aborted) {
        setList((all) => all.filter((one) => one.number !== next.number));
      } else {
        const wrongKind = error instanceof ApiError && error.status === 415;
        change(next.number, { problem: wrongKind ? text.wrongKind : messageOfUpload(next.file, error) });
      }
    }
    running.current.delete(next.number);
    void sendNext();
  }, [change]);

  const start = useCallback(
    (entries: Sending[]) => {
      waiting.current.push(...entries);
      for (let count = 0; count < Math.min(atOnce, entries.length); count++) {
        void sendNext();
      }
    },
    [sendNext],
  );

  const send = useCallback(
    (files: Iterable<File>) => {
      const entries = [...files].map((file) => {
        numbers.current += 1;
        return { number: numbers.current, file, part: 0, waiting: true, problem: undefined };
      });
      setList((all) => [...all, ...entries]);
      start(entries);
    },
    [start],
  );

  const stop = useCallback((number: number) => {
    running.current.get(number)?.abort();
    waiting.current = waiting.current.filter((one) => one.number !== number);
    setList((all) => all.filter((one) => one.number !== number));
  }, []);

  const again = useCallback(
    (entry: Sending) => {
      change(entry.number, { waiting: true, problem: undefined });
      start([entry]);
    },
    [change, start],
  );

  return { list, send, stop, again };
}
