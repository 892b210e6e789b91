import type { Changes } from './exchange';
import { Mirror, type NodesChange } from './mirror';
import type { BoardNode, Draft, Fields, ServerNode } from './model';
import { type Creation, Queue } from './queue';
import { Sender, type SenderOptions, sendEvery, sendWhileDragging } from './sender';
import { ShownNodes } from './shown';

/** NodeFields are changes of fields, each with the key of its node. */
export type NodeFields = Array<[key: string, fields: Fields]>;

type Options = SenderOptions & { onChange: (keys: Set<string>) => void };

/**
 * BoardSync keeps a board that several people change the same for all. Local changes are shown at once, wait in a
 * queue and go to the service together; what the service tells is shown below them. Once the queue is empty, the page
 * shows what the service has.
 */
export class BoardSync {
  private readonly mirror = new Mirror();
  private readonly queue = new Queue();
  private readonly shown: ShownNodes;
  private readonly sender: Sender;
  private added = 0;

  constructor(private readonly options: Options) {
    this.shown = new ShownNodes(this.mirror, this.queue, options.onChange);
    this.sender = new Sender(this.mirror, this.queue, this.shown, () => this.readAgain(), options);
  }

  /** load takes the first state of the board. */
  load(nodes: ServerNode[], revision: number): void {
    this.shown.show(this.mirror.replace(nodes, revision));
  }

  /** revision is the one from which events are to be followed. */
  get revision(): number {
    return this.mirror.revision;
  }

  get(key: string): BoardNode | undefined {
    return this.shown.get(key);
  }

  /** count is the number of nodes that are shown. */
  get count(): number {
    return this.shown.size;
  }

  /** all returns the nodes that are shown. */
  all(): BoardNode[] {
    return this.shown.all();
  }

  keyOf(id: string): string {
    return this.mirror.keyOf(id);
  }

  /** update changes fields of nodes. */
  update(changes: NodeFields): void {
    const there = changes.filter(([key]) => this.shown.get(key));
    for (const [key, fields] of there) {
      this.queue.update(key, fields);
    }
    this.shown.show(there.map(([key]) => key));
    this.sender.schedule(sendEvery);
  }

  /** hold keeps fields of nodes as this person has them, whatever others do, until they are released. */
  hold(changes: NodeFields): void {
    const there = changes.filter(([key]) => this.shown.get(key));
    for (const [key, fields] of there) {
      this.shown.held.set(key, { ...this.shown.held.get(key), ...fields });
      this.queue.update(key, fields);
    }
    this.shown.show(there.map(([key]) => key));
    this.sender.schedule(sendWhileDragging);
  }

  /** release lets go of all held nodes; where they lie now is sent at once. */
  release(): void {
    const keys = [...this.shown.held.keys()];
    for (const [key, fields] of this.shown.held) {
      if (this.shown.get(key)) {
        this.queue.update(key, fields);
      }
    }
    this.shown.held.clear();
    this.shown.show(keys);
    this.sender.schedule(0);
  }

  /** create adds a node, and returns the key under which it is shown from now on. */
  create(draft: Draft): string {
    this.added += 1;
    const key = `new-${this.added}-${Math.random().toString(36).slice(2, 8)}`;
    this.queue.create({ key, draft, guarded: false });
    this.shown.show([key]);
    this.sender.schedule(sendEvery);

    return key;
  }

  /** restore adds a deleted node once more, under the key that it had. */
  restore(key: string, draft: Draft): void {
    if (this.shown.get(key)) {
      return;
    }
    if (this.queue.removals.delete(key) && this.mirror.get(key)) {
      const { kind: _kind, ref: _ref, item: _item, ...fields } = draft;
      this.queue.update(key, fields);
    } else {
      this.queue.create({ key, draft, guarded: true });
    }
    this.shown.show([key]);
    this.sender.schedule(sendEvery);
  }

  /** remove deletes nodes. */
  remove(keys: string[]): void {
    for (const key of keys) {
      if (this.shown.get(key)) {
        this.shown.held.delete(key);
        this.queue.remove({ key, seen: this.mirror.get(key)?.revision ?? Number.POSITIVE_INFINITY });
      }
    }
    this.shown.show(keys);
    this.sender.schedule(sendEvery);
  }

  /** swap replaces a node by others in one step; if another person was faster, nothing happens. */
  swap(key: string, drafts: Draft[]): string[] {
    const creations = drafts.map((draft, index): Creation => {
      this.added += 1;
      return { key: `new-${this.added}-${index}`, draft, guarded: false };
    });
    this.queue.swaps.push({ removal: { key, seen: 0 }, creations });
    const keys = creations.map((creation) => creation.key);
    this.shown.show([key, ...keys]);
    this.sender.schedule(0);

    return keys;
  }

  /** takeChange takes a change that an event tells. Our own changes come back as well, and change nothing. */
  takeChange(change: NodesChange): void {
    const changed = new Set<string>();
    for (const node of change.put) {
      if (!this.sender.defer(node) && this.mirror.put(node)) {
        changed.add(this.mirror.keyOf(node.id));
      }
    }
    for (const id of change.deleted) {
      const key = this.mirror.keyOf(id);
      if (this.mirror.drop(id)) {
        this.forget(key);
        changed.add(key);
      }
    }
    this.mirror.revision = Math.max(this.mirror.revision, change.revision);
    this.shown.show(changed);
    this.sender.noteRevision();
  }

  private forget(key: string): void {
    this.queue.forget(key);
    this.shown.held.delete(key);
  }

  /** readAgain reads the whole board; changes that wait stay and are sent afterwards. */
  async readAgain(): Promise<void> {
    const { nodes, revision } = await this.options.transport.read();
    const gone = new Set(this.mirror.allKeys());
    const changed = this.mirror.replace(nodes, revision);
    for (const key of gone) {
      if (!this.mirror.idOf(key)) {
        this.forget(key);
      }
    }
    this.shown.show(changed);
    this.sender.noteRevision();
  }

  /** sendNow tries again at once after a break. */
  sendNow(): void {
    this.sender.sendNow();
  }

  /** takeRest returns what is not stored yet as the body of a last request, for a page that closes. */
  takeRest(): Changes | undefined {
    this.release();

    return this.sender.takeRest();
  }

  /** stop ends all sending. */
  stop(): void {
    this.sender.stop();
  }
}
