import type { Draft, Fields, ServerNode } from './model';

// What the board and the service tell each other, and what a person is told about it.

/** Changes is the body of a request that changes nodes. */
export type Changes = {
  create: Draft[];
  update: Array<Fields & { id: string }>;
  delete: string[];
};

export type ChangesAnswer = { revision: number; created: ServerNode[]; updated: ServerNode[]; deleted: string[] };

/** Failure says why a request was not made. */
export type Failure =
  | { kind: 'away'; retryAfter?: number }
  | { kind: 'stale'; revision: number }
  | { kind: 'invalid'; fields: Array<{ path: string; message: string }>; message: string }
  | { kind: 'gone' | 'refused'; message: string };

/** Transport calls the service. It throws nothing but SyncError. */
export type Transport = {
  read: () => Promise<{ nodes: ServerNode[]; revision: number }>;
  change: (changes: Changes, ifMatch: number | undefined) => Promise<ChangesAnswer>;
};

/** SyncError carries a Failure. */
export class SyncError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.kind);
  }
}

/** SyncState says whether everything is stored. */
export type SyncState = {
  state: 'saved' | 'saving' | 'away' | 'gone' | 'refused';
  /** The number of changes that the service does not have yet. */
  waiting: number;
  message?: string;
};

/** Notice is something that a person should know about their own changes. */
export type Notice = { kind: 'kept'; uid: string } | { kind: 'dropped'; message: string };
