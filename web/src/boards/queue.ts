import type { Draft, Fields } from './model';

/**
 * Creation is a node to add. It is unsure once a request with it got no answer: the service may have it already, under
 * an id that was not known before.
 */
export type Creation = { key: string; draft: Draft; guarded: boolean; unsure?: { known: Set<string> } };

/** Removal is a node to delete, with the revision in which the person saw it. */
export type Removal = { key: string; seen: number };

/** Swap is a node that others replace in one step, such as a run by its results. */
export type Swap = { removal: Removal; creations: Creation[] };

/**
 * Batch is what one request changes. A guarded one goes with If-Match, so that nobody deletes what another person has
 * changed meanwhile; a swap is made as a whole or not at all.
 */
export type Batch = {
  kind: 'plain' | 'guarded' | 'swap';
  creations: Creation[];
  updates: Array<[key: string, fields: Fields]>;
  removals: Removal[];
};

// The service takes 1,000 nodes and 4 MiB of text in one request.
const maxNodes = 500;
const maxText = 1_000_000;

/** Queue holds the changes that the service does not have yet, at most one for each field of a node. */
export class Queue {
  readonly fields = new Map<string, Fields>();
  readonly creations = new Map<string, Creation>();
  readonly removals = new Map<string, Removal>();
  swaps: Swap[] = [];

  get size(): number {
    return this.fields.size + this.creations.size + this.removals.size + this.swaps.length;
  }

  /** update changes fields of a node; a node that was not sent yet changes in its draft. */
  update(key: string, fields: Fields): void {
    const creation = this.creationOf(key);
    if (creation) {
      creation.draft = { ...creation.draft, ...fields };
    } else {
      this.fields.set(key, { ...this.fields.get(key), ...fields });
    }
  }

  create(creation: Creation): void {
    this.creations.set(creation.key, creation);
  }

  /** remove deletes a node; one that was never sent is only forgotten. */
  remove(removal: Removal): void {
    this.fields.delete(removal.key);
    const creation = this.creations.get(removal.key);
    if (creation && !creation.unsure) {
      this.creations.delete(removal.key);
      return;
    }
    this.removals.set(removal.key, removal);
  }

  /** creationOf returns the creation of a node that was not sent yet. */
  creationOf(key: string): Creation | undefined {
    return (
      this.creations.get(key) ?? this.swaps.flatMap((swap) => swap.creations).find((creation) => creation.key === key)
    );
  }

  /** isRemoved reports whether a node is to be deleted. */
  isRemoved(key: string): boolean {
    return this.removals.has(key) || this.swaps.some((swap) => swap.removal.key === key);
  }

  /** take returns the next request: additions and moves first, then deletions, then swaps. Nodes that wait for their id stay. */
  take(hasId: (key: string) => boolean): Batch | undefined {
    return this.takePlain(hasId) ?? this.takeGuarded(hasId) ?? this.takeSwap(hasId);
  }

  private takePlain(hasId: (key: string) => boolean): Batch | undefined {
    const batch: Batch = { kind: 'plain', creations: [], updates: [], removals: [] };
    let letters = 0;
    const full = () => batch.creations.length + batch.updates.length >= maxNodes || letters > maxText;

    for (const creation of this.creations.values()) {
      if (full()) {
        break;
      }
      if (!creation.guarded) {
        letters += creation.draft.text?.length ?? 0;
        batch.creations.push(creation);
      }
    }
    for (const [key, fields] of this.fields) {
      if (full()) {
        break;
      }
      if (hasId(key)) {
        letters += fields.text?.length ?? 0;
        batch.updates.push([key, fields]);
      }
    }

    for (const creation of batch.creations) {
      this.creations.delete(creation.key);
    }
    for (const [key] of batch.updates) {
      this.fields.delete(key);
    }
    return batch.creations.length + batch.updates.length > 0 ? batch : undefined;
  }

  private takeGuarded(hasId: (key: string) => boolean): Batch | undefined {
    const creations = [...this.creations.values()].filter((one) => one.guarded).slice(0, maxNodes);
    const removals = [...this.removals.values()].filter((one) => hasId(one.key)).slice(0, maxNodes);

    for (const creation of creations) {
      this.creations.delete(creation.key);
    }
    for (const removal of removals) {
      this.removals.delete(removal.key);
    }
    return creations.length + removals.length > 0 ? { kind: 'guarded', creations, updates: [], removals } : undefined;
  }

  private takeSwap(hasId: (key: string) => boolean): Batch | undefined {
    const swap = this.swaps.find((one) => hasId(one.removal.key));
    if (!swap) {
      return undefined;
    }
    this.swaps = this.swaps.filter((one) => one !== swap);
    return { kind: 'swap', creations: swap.creations, updates: [], removals: [swap.removal] };
  }

  /** putBack takes a batch back that was not made; what was changed since then stays the newer. */
  putBack(batch: Batch): void {
    if (batch.kind === 'swap' && batch.removals[0]) {
      this.swaps.unshift({ removal: batch.removals[0], creations: batch.creations });
      return;
    }
    for (const creation of batch.creations) {
      const newer = this.fields.get(creation.key);
      this.fields.delete(creation.key);
      this.creations.set(creation.key, { ...creation, draft: { ...creation.draft, ...newer } });
    }
    for (const [key, fields] of batch.updates) {
      if (!this.removals.has(key)) {
        this.fields.set(key, { ...fields, ...this.fields.get(key) });
      }
    }
    for (const removal of batch.removals) {
      this.removals.set(removal.key, removal);
    }
  }

  /** forget drops everything that waits for a node, because the node is gone. */
  forget(key: string): void {
    this.fields.delete(key);
    this.removals.delete(key);
    this.swaps = this.swaps.filter((swap) => swap.removal.key !== key);
  }

  /** purge forgets nodes that are neither on the board nor to be added: others have deleted them. */
  purge(hasId: (key: string) => boolean): void {
    const keys = [...this.fields.keys(), ...this.removals.keys(), ...this.swaps.map((swap) => swap.removal.key)];
    for (const key of keys) {
      if (!hasId(key) && !this.creationOf(key)) {
        this.forget(key);
      }
    }
  }

  clear(): void {
    this.fields.clear();
    this.creations.clear();
    this.removals.clear();
    this.swaps = [];
  }
}

/** markUnsure notes before a request that its nodes may be added although no answer comes. */
export function markUnsure(batch: Batch, known: Set<string>): void {
  for (const creation of batch.creations) {
    creation.unsure ??= { known };
  }
}

/** keysOf lists the nodes of a batch. */
export const keysOf = (batch: Batch) => [
  ...batch.creations.map((creation) => creation.key),
  ...batch.updates.map(([key]) => key),
  ...batch.removals.map((removal) => removal.key),
];

/** sure returns creations that the service has refused, and therefore does not have. */
export const sure = (creations: Creation[]) => creations.map((creation) => ({ ...creation, unsure: undefined }));

type Refusal = { path: string; message: string };

/** withoutRefused takes out of a batch what the service has refused, and returns what people should know. A refused swap is dropped as a whole. */
export function withoutRefused(
  batch: Batch,
  refusals: Refusal[],
  message: string,
): { rest: Batch; gone: string[]; messages: string[] } {
  const refused = new Set<string>();
  const messages = new Set<string>();
  for (const refusal of refusals) {
    const [list, index, field] = refusal.path.split('.');
    refused.add(index === undefined ? 'body' : `${list}.${index}`);
    const isGone = list === 'delete' || (list === 'update' && field === 'id');
    if (!isGone) {
      messages.add(refusal.message);
    }
  }
  if (refusals.length === 0) {
    messages.add(message);
  }

  // A refusal of the whole request, such as a full board, is about the new nodes, or else about everything.
  const whole = refused.has('body');
  const nothing = refusals.length === 0 || batch.kind === 'swap' || (whole && batch.creations.length === 0);
  const stays = (list: string) => (_: unknown, index: number) => !nothing && !refused.has(`${list}.${index}`);
  const gone = batch.updates.flatMap(([key], index) => (refused.has(`update.${index}`) ? [key] : []));
  const rest: Batch = {
    kind: batch.kind === 'swap' ? 'plain' : batch.kind,
    creations: whole ? [] : sure(batch.creations.filter(stays('create'))),
    updates: batch.updates.filter(stays('update')),
    removals: batch.removals.filter(stays('delete')),
  };

  return { rest, gone, messages: [...messages] };
}
