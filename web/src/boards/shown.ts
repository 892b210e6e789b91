import type { Mirror } from './mirror';
import { type BoardNode, type Fields, isSame, showDraft, showNode } from './model';
import type { Batch, Queue } from './queue';

/**
 * ShownNodes are the nodes as this page shows them: what the service has, and above it what is being sent, what waits
 * to be sent, and what this person holds.
 */
export class ShownNodes {
  /** Fields that stay as this person has them, whatever others do. */
  readonly held = new Map<string, Fields>();
  private readonly nodes = new Map<string, BoardNode>();
  private sending: Batch | undefined;
  private sent = new Map<string, Fields>();

  constructor(
    private readonly mirror: Mirror,
    private readonly queue: Queue,
    private readonly onChange: (keys: Set<string>) => void,
  ) {}

  get(key: string): BoardNode | undefined {
    return this.nodes.get(key);
  }

  get size(): number {
    return this.nodes.size;
  }

  all(): BoardNode[] {
    return [...this.nodes.values()];
  }

  /** setSending says which request is under way. Its changes are shown until it ends, though they wait no longer. */
  setSending(batch: Batch | undefined): void {
    this.sending = batch;
    this.sent = new Map(batch?.updates);
  }

  /** show shows nodes as they are now, and tells which of them differ from what was shown before. */
  show(keys: Iterable<string>): void {
    const changed = new Set<string>();
    for (const key of keys) {
      const before = this.nodes.get(key);
      const node = this.compose(key);
      if (node && !isSame(before, node)) {
        this.nodes.set(key, node);
        changed.add(key);
      }
      if (!node && this.nodes.delete(key)) {
        changed.add(key);
      }
    }
    if (changed.size > 0) {
      this.onChange(changed);
    }
  }

  /** showAll shows all nodes as they are now. */
  showAll(): void {
    this.show(new Set([...this.nodes.keys(), ...this.mirror.allKeys()]));
  }

  private compose(key: string): BoardNode | undefined {
    if (this.queue.isRemoved(key) || this.sending?.removals.some((one) => one.key === key)) {
      return undefined;
    }

    const known = this.mirror.get(key);
    const creation = this.queue.creationOf(key) ?? this.sending?.creations.find((one) => one.key === key);
    const node = known ? showNode(key, known) : creation && showDraft(key, creation.draft);
    if (!node) {
      return undefined;
    }

    return Object.assign(node, this.sent.get(key), this.queue.fields.get(key), this.held.get(key));
  }
}
