import type { Changes, ChangesAnswer, Failure, Notice, SyncState, Transport } from './exchange';
import { SyncError } from './exchange';
import type { Mirror } from './mirror';
import type { ServerNode } from './model';
import { type Batch, keysOf, markUnsure, type Queue, sure, withoutRefused } from './queue';
import type { ShownNodes } from './shown';

/** sendEvery is how many milliseconds changes wait for others that go in the same request. */
export const sendEvery = 150;

/** sendWhileDragging is the same while nodes are held. */
export const sendWhileDragging = 250;

const guardAttempts = 5;
const catchUpTime = 1500;
const longestRetry = 15_000;

export type SenderOptions = {
  transport: Transport;
  uid: string | undefined;
  onState: (state: SyncState) => void;
  onNotice: (notice: Notice) => void;
};

/**
 * Sender sends the changes that wait in the queue, one request at a time. It repeats requests that got no answer, and
 * gives up those that the service refuses.
 */
export class Sender {
  /** noteRevision is called when the mirror has taken changes: a request may wait for their revision. */
  noteRevision: () => unknown = () => undefined;
  private sending: Batch | undefined;
  private deferred: ServerNode[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private dueAt = Number.POSITIVE_INFINITY;
  private retries = 0;
  private guards = 0;
  private stopped = false;
  private state: SyncState = { state: 'saved', waiting: 0 };

  /** readAgain reads the whole board into the mirror. */
  constructor(
    private readonly mirror: Mirror,
    private readonly queue: Queue,
    private readonly shown: ShownNodes,
    private readonly readAgain: () => Promise<void>,
    private readonly options: SenderOptions,
  ) {}

  /** schedule sends what waits after so many milliseconds, or earlier if that was asked for before. */
  schedule(milliseconds: number): void {
    this.report();
    const dueAt = Date.now() + milliseconds;
    if (this.stopped || this.sending || this.queue.size === 0 || this.dueAt <= dueAt) {
      return;
    }
    clearTimeout(this.timer);
    this.dueAt = dueAt;
    this.timer = setTimeout(() => void this.send(), milliseconds);
  }

  /** sendNow tries again at once after a break. */
  sendNow(): void {
    this.dueAt = Number.POSITIVE_INFINITY;
    this.schedule(0);
  }

  /** defer keeps a node that the request under way may have added: its answer will tell under which key it is shown. */
  defer(node: ServerNode): boolean {
    const { uid } = this.options;
    const adding = (this.sending?.creations.length ?? 0) > 0;
    const mayBeOurs = adding && !this.mirror.hasId(node.id) && (!node.uid || !uid || node.uid === uid);
    if (mayBeOurs) {
      this.deferred.push(node);
    }

    return mayBeOurs;
  }

  private takeDeferred(): string[] {
    const nodes = this.deferred.filter((node) => this.mirror.put(node));
    this.deferred = [];

    return nodes.map((node) => this.mirror.keyOf(node.id));
  }

  private async send(): Promise<void> {
    this.dueAt = Number.POSITIVE_INFINITY;
    const hasId = (key: string) => this.mirror.idOf(key) !== undefined;
    this.queue.purge(hasId);
    const batch = this.queue.take(hasId);
    if (this.stopped || !batch) {
      this.report();
      return;
    }

    this.sending = batch;
    this.shown.setSending(batch);
    this.keepChanged(batch);
    try {
      await this.findUnsure(batch);
      if (batch.creations.length + batch.updates.length + batch.removals.length > 0) {
        const guarded = batch.kind === 'guarded' && this.guards < guardAttempts;
        const since = this.mirror.revision;
        markUnsure(batch, this.mirror.knownIds());
        const answer = await this.options.transport.change(this.bodyOf(batch), guarded ? since : undefined);
        this.finish(batch, answer);
      }
      this.retries = 0;
      this.guards = 0;
      this.end(batch, 'saving');
      this.schedule(this.shown.held.size > 0 ? sendWhileDragging : sendEvery);
    } catch (error) {
      await this.recover(batch, error instanceof SyncError ? error.failure : { kind: 'away' });
    }
  }

  // A request that got no answer may have added its nodes: look for them before they are added a second time.
  private async findUnsure(batch: Batch): Promise<void> {
    const unsure = batch.creations.filter((creation) => creation.unsure);
    if (unsure.length === 0) {
      return;
    }

    await this.readAgain();
    for (const creation of unsure) {
      const id = this.mirror.findAdded(creation.draft, creation.unsure?.known ?? new Set());
      if (id) {
        this.mirror.adopt(creation.key, id);
        batch.creations = batch.creations.filter((one) => one !== creation);
        this.shown.show([id, creation.key]);
      }
    }
    if (batch.kind === 'swap') {
      batch.removals = batch.removals.filter((removal) => this.mirror.idOf(removal.key));
      batch.creations = batch.removals.length > 0 ? batch.creations : [];
    }
  }

  private bodyOf(batch: Batch): Changes {
    const idOf = (key: string) => this.mirror.idOf(key) ?? key;
    batch.updates = batch.updates.filter(([key]) => this.mirror.idOf(key));

    return {
      create: batch.creations.map(({ draft: { item: _item, ...draft } }) => draft),
      update: batch.updates.map(([key, fields]) => ({ ...fields, id: idOf(key) })),
      delete: batch.removals.map((removal) => idOf(removal.key)),
    };
  }

  private finish(batch: Batch, answer: ChangesAnswer): void {
    for (const [index, node] of answer.created.entries()) {
      const creation = batch.creations[index];
      if (creation) {
        this.mirror.adopt(creation.key, node.id);
        this.shown.show([node.id]);
      }
      this.mirror.put(node);
    }
    for (const node of answer.updated) {
      this.mirror.put(node);
    }
    for (const id of answer.deleted) {
      this.mirror.drop(id);
    }
    this.mirror.takeAnswer(answer.revision);
  }

  // Ends a request: what it changed is now shown as the service has it.
  private end(batch: Batch, state: SyncState['state'], message?: string): void {
    this.sending = undefined;
    this.shown.setSending(undefined);
    this.shown.show([...keysOf(batch), ...this.takeDeferred()]);
    this.report(state, message);
  }

  private async recover(batch: Batch, failure: Failure): Promise<void> {
    switch (failure.kind) {
      case 'away': {
        this.queue.putBack(batch);
        this.end(batch, 'away');
        const wait = failure.retryAfter
          ? failure.retryAfter * 1000
          : Math.min(longestRetry, 500 * 2 ** this.retries + Math.random() * 300);
        this.retries += 1;
        this.schedule(wait);
        return;
      }
      case 'stale':
        await this.catchUp(failure.revision);
        this.guards += 1;
        this.keepChanged(batch);
        this.queue.putBack({ ...batch, creations: sure(batch.creations) });
        this.end(batch, 'saving');
        this.schedule(Math.random() * 80);
        return;
      case 'invalid':
        this.dropInvalid(batch, failure);
        this.end(batch, 'saving');
        this.schedule(0);
        return;
      default:
        this.queue.clear();
        this.shown.held.clear();
        this.stopped = true;
        this.end(batch, failure.kind, failure.message);
        this.shown.showAll();
    }
  }

  // Waits until events have told everything up to a revision, and reads the board if they do not.
  private async catchUp(revision: number): Promise<void> {
    const arrived = await new Promise<boolean>((resolve) => {
      this.noteRevision = () => this.mirror.revision >= revision && resolve(true);
      this.noteRevision();
      setTimeout(() => resolve(false), catchUpTime);
    });
    if (!arrived) {
      await this.readAgain().catch(() => undefined);
    }
  }

  // A node that another person has changed since this person deleted it stays.
  private keepChanged(batch: Batch): void {
    if (batch.kind !== 'guarded') {
      return;
    }

    const removals = batch.removals;
    const changer = (key: string, seen: number) => {
      const node = this.mirror.get(key);
      return node?.uid && node.uid !== this.options.uid && node.revision > seen ? node.uid : undefined;
    };
    batch.removals = removals.filter(({ key, seen }) => this.mirror.idOf(key) && !changer(key, seen));
    for (const { key, seen } of removals) {
      const uid = changer(key, seen);
      if (uid) {
        this.options.onNotice({ kind: 'kept', uid });
      }
    }
    // A node that stays need not be brought back either.
    batch.creations = batch.creations.filter(
      ({ key }) => !this.mirror.idOf(key) || batch.removals.some((removal) => removal.key === key),
    );
    this.shown.show(removals.map((removal) => removal.key));
  }

  // Sends again what the service did not refuse. Nodes that are gone were deleted by others, which is no news.
  private dropInvalid(batch: Batch, failure: Extract<Failure, { kind: 'invalid' }>): void {
    const { rest, gone, messages } = withoutRefused(batch, failure.fields, failure.message);
    for (const key of gone) {
      this.queue.forget(key);
    }
    for (const message of messages) {
      this.options.onNotice({ kind: 'dropped', message });
    }
    this.queue.putBack(rest);
  }

  private report(state: SyncState['state'] = this.state.state, message?: string): void {
    const waiting = this.queue.size + (this.sending ? 1 : 0);
    const ended = this.stopped && (state === 'gone' || state === 'refused');
    const next: SyncState = {
      state: ended ? state : waiting === 0 ? 'saved' : state === 'saved' ? 'saving' : state,
      waiting,
      message: message ?? (ended ? this.state.message : undefined),
    };
    if (next.state !== this.state.state || next.waiting !== this.state.waiting) {
      this.state = next;
      this.options.onState(next);
    }
  }

  /** takeRest returns what is not stored yet as the body of a last request, for a page that closes. */
  takeRest(): Changes | undefined {
    const batch = this.queue.take((key) => this.mirror.idOf(key) !== undefined);

    return batch && this.bodyOf(batch);
  }

  /** stop ends all sending. */
  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }
}
