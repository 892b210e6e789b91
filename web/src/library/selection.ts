import type { Item } from './items';

/** rangeBetween returns the numbers from one item to another, whichever comes first; `to` is the one after the last. */
export function rangeBetween(anchor: number, index: number): { from: number; to: number } {
  return { from: Math.min(anchor, index), to: Math.max(anchor, index) + 1 };
}

/** Selection holds the chosen items in the order in which they were chosen. Tiles listen to it, so that choosing draws no other part of the page. */
export class Selection {
  #items = new Map<string, Item>();
  #list: Item[] = [];
  readonly #listeners = new Set<() => void>();
  /** The item from which a range goes on. */
  anchor = -1;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);

    return () => this.#listeners.delete(listener);
  };

  /** Returns the chosen items; the same list until something changes. */
  list = (): Item[] => this.#list;

  has(id: string): boolean {
    return this.#items.has(id);
  }

  /** Chooses an item that is not chosen, and the other way round. */
  toggle(item: Item, index: number): void {
    if (!this.#items.delete(item.id)) {
      this.#items.set(item.id, item);
    }
    this.anchor = index;
    this.#tell();
  }

  add(items: Item[]): void {
    for (const item of items) {
      this.#items.set(item.id, item);
    }
    this.#tell();
  }

  remove(ids: Iterable<string>): void {
    for (const id of ids) {
      this.#items.delete(id);
    }
    this.#tell();
  }

  /** Puts newer versions of chosen items into their places. */
  update(items: Item[]): void {
    for (const item of items.filter((one) => this.#items.has(one.id))) {
      this.#items.set(item.id, item);
    }
    this.#tell();
  }

  clear(): void {
    this.#items = new Map();
    this.anchor = -1;
    this.#tell();
  }

  #tell(): void {
    this.#list = [...this.#items.values()];
    for (const listener of this.#listeners) {
      listener();
    }
  }
}
