import type { Item } from './items';
import type { Places } from './places';
import type { Point } from './timeline';

/** Shelf is a list of items that is read in parts, as they come into view. */
export type Shelf = {
  /** How many items the list has, as far as it is known. */
  readonly total: number;
  /** Whether `total` is the whole list. */
  readonly complete: boolean;
  /** Why the last part could not be read. */
  readonly error: unknown;
  subscribe: (listener: () => void) => () => void;
  /** A number that grows with every change. */
  version: () => number;
  /** Returns an item, or undefined while it is not read. */
  itemAt: (index: number) => Item | undefined;
  /** Reads what is in view and stops reading what is not. */
  want: (from: number, to: number) => void;
  /** Tries again to read what failed. */
  retry: () => void;
  /** Reads some items whether they are in view or not, and holds them until the view moves far away. */
  read: (from: number, to: number) => Promise<Item[]>;
  /** Finds the number of an item among those that are read. */
  find: (id: string) => number;
  /** Finds the number of an item that may not be read yet; -1 if the list does not have it. */
  locate: (id: string, created: string) => Promise<number>;
  /** Known times in the order of the list, for the timeline. */
  points: () => Point[];
  /** Takes items out of the list; the returned function puts some of them back to where they were. */
  remove: (ids: Set<string>) => (back: Set<string>) => void;
  /** Changes an item that is read. */
  change: (id: string, change: Partial<Item>) => void;
};

/** ListPage is a part of a list, with the cursor of the next part. */
export type ListPage = { items: Item[]; next: string | undefined };

export type ReadPage = (cursor: string | undefined, limit: number, signal: AbortSignal) => Promise<ListPage>;

export const pageSize = 100;
const keptPlaces = 40;
// How far outside the view a place is still read to its end once that has begun.
const sparePlaces = 2;
const retrySeconds = 3;

/** Watched tells listeners of changes. */
class Watched {
  readonly #listeners = new Set<() => void>();
  #version = 0;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);

    return () => this.#listeners.delete(listener);
  };

  version = (): number => this.#version;

  protected tell(): void {
    this.#version += 1;
    for (const listener of this.#listeners) {
      listener();
    }
  }
}

type Removed = { place: number; at: number; item: Item };

/** PlacedShelf is a list that can be entered at many places. It holds the parts around the view and forgets the others. */
export class PlacedShelf extends Watched implements Shelf {
  readonly #places: Places;
  readonly #readPage: ReadPage;
  readonly #parts = new Map<number, Item[]>();
  readonly #reading = new Map<number, AbortController>();
  readonly complete = true;
  error: unknown;
  #wanted = { first: 0, last: -1 };
  #failedAt = 0;

  constructor(places: Places, readPage: ReadPage, firstItems: Item[] = []) {
    super();
    this.#places = places;
    this.#readPage = readPage;
    if (places.count > 0 && firstItems.length >= places.sizeOf(0)) {
      this.#parts.set(0, firstItems.slice(0, places.sizeOf(0)));
    }
  }

  get total(): number {
    return this.#places.total;
  }

  itemAt(index: number): Item | undefined {
    const place = this.#places.placeOf(index);

    return this.#parts.get(place)?.[index - this.#places.startOf(place)];
  }

  want(from: number, to: number): void {
    if (to <= from) {
      return;
    }
    this.#wanted = { first: this.#places.placeOf(from), last: this.#places.placeOf(to - 1) };
    const { first, last } = this.#wanted;

    for (const [place, stop] of this.#reading) {
      if (place < first - sparePlaces || place > last + sparePlaces) {
        stop.abort();
        this.#reading.delete(place);
      }
    }
    if (Date.now() - this.#failedAt > retrySeconds * 1000) {
      for (let place = first; place <= last; place++) {
        void this.#load(place);
      }
    }
    this.#forgetFar(first, last);
  }

  retry(): void {
    this.#failedAt = 0;
    this.error = undefined;
    for (let place = this.#wanted.first; place <= this.#wanted.last; place++) {
      void this.#load(place);
    }
    this.tell();
  }

  async read(from: number, to: number): Promise<Item[]> {
    const items: Item[] = [];
    for (let place = this.#places.placeOf(from); place < this.#places.count; place++) {
      const start = this.#places.startOf(place);
      if (start >= to) {
        break;
      }
      const part = this.#parts.get(place) ?? (await this.#readPlace(place, new AbortController().signal));
      this.#parts.set(place, part);
      items.push(...part.slice(Math.max(0, from - start), to - start));
    }

    return items;
  }

  find(id: string): number {
    for (const [place, items] of this.#parts) {
      const at = items.findIndex((item) => item.id === id);
      if (at >= 0) {
        return this.#places.startOf(place) + at;
      }
    }
    return -1;
  }

  async locate(id: string, created: string): Promise<number> {
    const known = this.find(id);
    if (known >= 0) {
      return known;
    }
    for (const place of this.#places.placesOfTime(new Date(created).getTime())) {
      const items = this.#parts.get(place) ?? (await this.#readPlace(place, new AbortController().signal));
      const at = items.findIndex((item) => item.id === id);
      if (at >= 0) {
        this.#parts.set(place, items);
        this.tell();
        return this.#places.startOf(place) + at;
      }
    }
    return -1;
  }

  points(): Point[] {
    const points: Point[] = [];
    for (let place = 0; place < this.#places.count; place++) {
      points.push({ index: this.#places.startOf(place), time: this.#places.timeOf(place) });
    }
    const last = this.itemAt(this.total - 1);
    if (last) {
      points.push({ index: this.total - 1, time: new Date(last.created).getTime() });
    }

    return points;
  }

  remove(ids: Set<string>): (back: Set<string>) => void {
    const removed: Removed[] = [];
    for (const [place, items] of this.#parts) {
      const gone = items.flatMap((item, at) => (ids.has(item.id) ? [{ place, at, item }] : []));
      if (gone.length > 0) {
        const kept = items.filter((item) => !ids.has(item.id));
        this.#parts.set(place, kept);
        this.#places.resize(place, -gone.length);
        removed.push(...gone);
      }
    }
    this.tell();

    return (back) => this.#putBack(removed.filter((one) => back.has(one.item.id)));
  }

  change(id: string, change: Partial<Item>): void {
    for (const [place, items] of this.#parts) {
      if (items.some((item) => item.id === id)) {
        const next = items.map((item) => (item.id === id ? { ...item, ...change } : item));
        this.#parts.set(place, next);
      }
    }
    this.tell();
  }

  #putBack(removed: Removed[]): void {
    for (const { place, at, item } of removed) {
      const items = this.#parts.get(place);
      if (items && !items.some((one) => one.id === item.id)) {
        this.#parts.set(place, items.toSpliced(at, 0, item));
      }
      this.#places.resize(place, 1);
    }
    this.tell();
  }

  async #load(place: number): Promise<void> {
    if (this.#parts.has(place) || this.#reading.has(place) || this.#places.sizeOf(place) === 0) {
      return;
    }

    const stop = new AbortController();
    this.#reading.set(place, stop);
    try {
      const items = await this.#readPlace(place, stop.signal);
      if (stop.signal.aborted) {
        return;
      }
      this.#parts.set(place, items);
      this.error = undefined;
    } catch (error) {
      if (stop.signal.aborted) {
        return;
      }
      this.error = error;
      this.#failedAt = Date.now();
    }
    this.#reading.delete(place);
    this.tell();
  }

  /** Reads the whole stretch of a place. If others deleted items meanwhile, the stretch becomes shorter. */
  async #readPlace(place: number, signal: AbortSignal): Promise<Item[]> {
    const size = this.#places.sizeOf(place);
    const items: Item[] = [];
    let cursor = this.#places.cursorOf(place);
    do {
      const page = await this.#readPage(cursor, Math.min(pageSize, size - items.length), signal);
      items.push(...page.items);
      cursor = page.next;
    } while (cursor && items.length < size);

    if (items.length < size && !signal.aborted) {
      this.#places.resize(place, items.length - size);
    }
    return items;
  }

  #forgetFar(first: number, last: number): void {
    if (this.#parts.size <= keptPlaces) {
      return;
    }
    const middle = (first + last) / 2;
    const far = [...this.#parts.keys()].sort((one, other) => Math.abs(other - middle) - Math.abs(one - middle));
    for (const place of far.slice(0, this.#parts.size - keptPlaces)) {
      this.#parts.delete(place);
    }
  }
}

/** GrowingShelf is a list that can only be read from its beginning, such as uploads. */
export class GrowingShelf extends Watched implements Shelf {
  #items: Item[];
  #next: string | undefined;
  readonly #readPage: ReadPage;
  #reading: Promise<void> | undefined;
  error: unknown;

  constructor(first: ListPage, readPage: ReadPage) {
    super();
    this.#items = first.items;
    this.#next = first.next;
    this.#readPage = readPage;
  }

  get total(): number {
    return this.#items.length;
  }

  get complete(): boolean {
    return this.#next === undefined;
  }

  itemAt(index: number): Item | undefined {
    return this.#items[index];
  }

  want(_: number, to: number): void {
    if (to > this.#items.length - pageSize && !this.error) {
      void this.#readOn();
    }
  }

  retry(): void {
    this.error = undefined;
    void this.#readOn();
    this.tell();
  }

  async read(from: number, to: number): Promise<Item[]> {
    while (this.#next && this.#items.length < to) {
      await this.#readOn();
    }
    return this.#items.slice(from, to);
  }

  find(id: string): number {
    return this.#items.findIndex((item) => item.id === id);
  }

  async locate(id: string): Promise<number> {
    while (this.#next && this.find(id) < 0 && !this.error) {
      await this.#readOn();
    }
    return this.find(id);
  }

  points(): Point[] {
    return this.#items
      .map((item, index) => ({ index, time: new Date(item.created).getTime() }))
      .filter((_, index) => index % 20 === 0);
  }

  /** Puts a new item before all others. */
  prepend(item: Item): void {
    this.#items = [item, ...this.#items.filter((one) => one.id !== item.id)];
    this.tell();
  }

  remove(ids: Set<string>): (back: Set<string>) => void {
    const before = this.#items;
    this.#items = before.filter((item) => !ids.has(item.id));
    this.tell();

    return (back) => {
      const present = new Set(this.#items.map((item) => item.id));
      const known = new Set(before.map((item) => item.id));
      const later = this.#items.filter((item) => !known.has(item.id));
      const earlier = before.filter((item) => present.has(item.id) || back.has(item.id));
      const newer = later.filter((item) => item.created > (before[0]?.created ?? ''));
      this.#items = [...newer, ...earlier, ...later.filter((item) => !newer.includes(item))];
      this.tell();
    };
  }

  change(id: string, change: Partial<Item>): void {
    this.#items = this.#items.map((item) => (item.id === id ? { ...item, ...change } : item));
    this.tell();
  }

  #readOn(): Promise<void> {
    this.#reading ??= this.#readNext().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNext(): Promise<void> {
    if (!this.#next) {
      return;
    }
    try {
      const page = await this.#readPage(this.#next, pageSize, new AbortController().signal);
      this.#items = [...this.#items, ...page.items];
      this.#next = page.next;
    } catch (error) {
      this.error = error;
    }
    this.tell();
  }
}
