import type { Draft, ServerNode } from './model';

/** NodesChange is a change of nodes as an event tells it. */
export type NodesChange = { revision: number; put: ServerNode[]; deleted: string[] };

/**
 * Mirror is the board as the service last told it, from pages, events and answers in any order: each node has the
 * newest revision that was seen, and a deleted one never returns under its id. It also knows which key of this page
 * stands for which id.
 */
export class Mirror {
  /** The revision up to which all changes are here. */
  revision = 0;
  private readonly nodes = new Map<string, ServerNode>();
  private readonly dead = new Set<string>();
  private readonly ids = new Map<string, string>();
  private readonly keys = new Map<string, string>();

  /** idOf returns the id of a node that the service has. */
  idOf(key: string): string | undefined {
    return this.get(key)?.id;
  }

  /** keyOf returns the key that stands for an id on this page. */
  keyOf(id: string): string {
    return this.keys.get(id) ?? id;
  }

  /** get returns the service's state of a node. */
  get(key: string): ServerNode | undefined {
    const id = this.ids.get(key) ?? key;

    return this.keyOf(id) === key ? this.nodes.get(id) : undefined;
  }

  hasId(id: string): boolean {
    return this.nodes.has(id) || this.dead.has(id);
  }

  allKeys(): string[] {
    return [...this.nodes.keys()].map((id) => this.keyOf(id));
  }

  /** adopt makes a key of this page stand for a node of the service. */
  adopt(key: string, id: string): void {
    this.ids.set(key, id);
    this.keys.set(id, key);
  }

  /** put takes the state of a node, unless a newer one or its deletion is known. It reports whether something changed. */
  put(node: ServerNode): boolean {
    const known = this.nodes.get(node.id);
    if (this.dead.has(node.id) || (known && known.revision >= node.revision)) {
      return false;
    }
    this.nodes.set(node.id, keepItem(known, node));
    return true;
  }

  /** drop takes the deletion of a node. */
  drop(id: string): boolean {
    this.dead.add(id);
    return this.nodes.delete(id);
  }

  /** takeAnswer notes that our own change led to a revision: if no other change lies between, everything up to it is known. */
  takeAnswer(revision: number): void {
    if (revision === this.revision + 1) {
      this.revision = revision;
    }
  }

  /** replace takes a board that was read anew, and returns the keys that may have changed. */
  replace(nodes: ServerNode[], revision: number): Set<string> {
    const changed = new Set(this.allKeys());
    const read = new Set(nodes.map((node) => node.id));

    for (const [id, node] of this.nodes) {
      if (!read.has(id) && node.revision <= revision) {
        this.drop(id);
      }
    }
    for (const node of nodes) {
      this.put(node);
      changed.add(this.keyOf(node.id));
    }
    this.revision = Math.max(this.revision, revision);

    return changed;
  }

  /** knownIds returns the ids of all nodes that are here. */
  knownIds(): Set<string> {
    return new Set(this.nodes.keys());
  }

  /** findAdded returns the id of a node that a request without an answer may have added: one that was not known before it. */
  findAdded(draft: Draft, known: Set<string>): string | undefined {
    for (const [id, node] of this.nodes) {
      if (!known.has(id) && !this.keys.has(id) && matches(node, draft)) {
        return id;
      }
    }
    return undefined;
  }
}

// Another person may have moved the node or changed its text already, hardly both.
function matches(node: ServerNode, draft: Draft): boolean {
  const samePlace = node.x === draft.x && node.y === draft.y;
  const sameText = node.text !== '' && node.text === draft.text;

  return node.kind === draft.kind && node.ref === (draft.ref ?? null) && (samePlace || sameText || node.z === draft.z);
}

// Addresses of files differ at each read, and the first ones stay good: keeping them keeps pictures from loading again.
function keepItem(known: ServerNode | undefined, node: ServerNode): ServerNode {
  return known?.item && node.item && known.ref === node.ref ? { ...node, item: known.item } : node;
}
