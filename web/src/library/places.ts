import type { Schemas } from '../api/client';

export type Marks = Schemas['LibraryMarks'];

/** Places knows where in a long list it can be entered, and which stretch of the list begins at each of these places. */
export class Places {
  readonly #cursors: Array<string | null>;
  readonly #times: number[];
  readonly #sizes: number[];
  readonly #starts: number[];
  total: number;

  constructor(marks: Marks) {
    this.total = marks.total;
    this.#cursors = marks.marks.map((mark) => mark.cursor);
    this.#times = marks.marks.map((mark) => new Date(mark.created).getTime());
    this.#starts = marks.marks.map((mark) => mark.index);
    this.#sizes = marks.marks.map((mark, place) => (marks.marks[place + 1]?.index ?? marks.total) - mark.index);
  }

  get count(): number {
    return this.#starts.length;
  }

  /** Returns the number of the first item of a place. */
  startOf(place: number): number {
    return this.#starts[place] ?? this.total;
  }

  /** Returns how many items there are from a place to the next one. */
  sizeOf(place: number): number {
    return this.#sizes[place] ?? 0;
  }

  cursorOf(place: number): string | undefined {
    return this.#cursors[place] ?? undefined;
  }

  timeOf(place: number): number {
    return this.#times[place] ?? 0;
  }

  /** Returns the place whose stretch has the item with this number. */
  placeOf(index: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.startOf(middle) <= index) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    // Places that became empty begin where the next one begins.
    while (this.sizeOf(low) === 0 && low > 0) {
      low -= 1;
    }

    return low;
  }

  /** Returns the places whose stretch can have an item of this time; several if many items have the same time. */
  placesOfTime(time: number): number[] {
    const falling = this.timeOf(0) >= this.timeOf(this.count - 1);
    const isBefore = (one: number, other: number) => (falling ? one >= other : one <= other);
    const found: number[] = [];
    for (let place = 0; place < this.count; place++) {
      const isLast = place + 1 === this.count;
      if (isBefore(this.timeOf(place), time) && (isLast || isBefore(time, this.timeOf(place + 1)))) {
        found.push(place);
      }
    }

    return found;
  }

  /** Makes a place longer or shorter after items came back or went. */
  resize(place: number, change: number): void {
    this.#sizes[place] = Math.max(0, this.sizeOf(place) + change);
    for (let next = place + 1; next < this.count; next++) {
      this.#starts[next] = this.startOf(next - 1) + this.sizeOf(next - 1);
    }
    const last = this.count - 1;
    this.total = last < 0 ? 0 : this.startOf(last) + this.sizeOf(last);
  }
}
