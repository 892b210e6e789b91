import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { ApiError } from '../api/errors';
import { useToast } from '../ui/Toast';
import { messageOf } from './ErrorFault';

type Options<V, R> = {
  /** What a toast says once it is done. */
  done?: (result: R, value: V) => string;
  /** What to read anew once it is done, or once it was refused. */
  refresh?: QueryKey[];
  onDone?: (result: R, value: V) => void;
  /** Whether a toast tells of a refusal; otherwise the form that holds the action shows it. */
  toastRefusal?: boolean;
};

/** Action is something that a person does with the service. */
export type Action<V> = {
  run: (value: V) => void;
  busy: boolean;
  error: unknown;
  /** Seconds until it may be tried again, after the service has named a time. */
  wait: number;
  reset: () => void;
};

/** useAction calls the service once, tells the outcome, and reads anew what has changed. */
export function useAction<V = void, R = unknown>(
  act: (value: V) => Promise<R>,
  { done, refresh = [], onDone, toastRefusal }: Options<V, R> = {},
): Action<V> {
  const cache = useQueryClient();
  const toast = useToast();

  const mutation = useMutation({
    mutationFn: act,
    onSuccess: (result, value) => {
      if (done) {
        toast({ text: done(result, value) });
      }
      onDone?.(result, value);
    },
    onError: (error) => {
      if (toastRefusal) {
        toast({ text: messageOf(error) });
      }
    },
    onSettled: () => Promise.all(refresh.map((queryKey) => cache.invalidateQueries({ queryKey }))),
  });

  return {
    run: mutation.mutate,
    busy: mutation.isPending,
    error: mutation.error,
    wait: useWait(mutation.error),
    reset: mutation.reset,
  };
}

/** useWait counts down the seconds that the service asks to wait after a refusal. */
export function useWait(error: unknown): number {
  const seconds = error instanceof ApiError && error.status === 429 ? (error.retryAfter ?? 0) : 0;
  const [left, setLeft] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another refusal of the same length starts anew.
  useEffect(() => {
    setLeft(seconds);
    if (seconds === 0) {
      return;
    }
    const timer = setInterval(() => setLeft((before) => Math.max(0, before - 1)), 1000);
    return () => clearInterval(timer);
  }, [seconds, error]);

  return left;
}

/** problemOf returns why the service refused one field of a form; `path` is its place in the request. */
export function problemOf(error: unknown, path: string): string | undefined {
  return error instanceof ApiError ? error.fields.find((field) => field.path === path)?.message : undefined;
}

/** hasUnnamedProblem reports whether a refusal is about something else than the named fields of a form. */
export function hasUnnamedProblem(error: unknown, paths: string[]): boolean {
  if (!error) {
    return false;
  }
  const fields = error instanceof ApiError ? error.fields : [];

  return fields.length === 0 || fields.some((field) => !paths.includes(field.path));
}
