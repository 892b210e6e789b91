import type { Point, Viewer } from './model';

export type Halo = { name: string; color: number; verb: 'holds' | 'changed' };

const haloTime = 6000;

/** personColor returns one of five colours for a person, always the same. */
export function personColor(uid: string): number {
  let sum = 0;
  for (const letter of uid) {
    sum = (sum * 31 + letter.charCodeAt(0)) % 9973;
  }
  return (sum % 5) + 1;
}

/** Presence knows who else looks at the board, what they have selected, and what they changed a moment ago. */
export class Presence {
  private people: Viewer[] = [];
  private others: Viewer[] = [];
  private halos = new Map<string, Halo>();
  private readonly changed = new Map<string, { uid: string; until: number }>();
  private readonly names = new Map<string, string>();
  private readonly listeners = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly uid: string,
    private readonly keyOf: (id: string) => string,
  ) {}

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  getPeople = () => this.people;
  getOthers = () => this.others;
  haloOf = (key: string) => this.halos.get(key);
  nameOf = (uid: string) => this.names.get(uid);

  /** setPeople takes who looks at the board now. */
  setPeople(people: Viewer[]): void {
    this.people = people;
    this.others = people.filter((person) => person.uid !== this.uid);
    for (const person of people) {
      this.names.set(person.uid, person.name);
    }
    this.update();
  }

  /** noteChange remembers for a moment that another person has changed a node. */
  noteChange(key: string, uid: string): void {
    if (uid !== this.uid) {
      this.changed.set(key, { uid, until: Date.now() + haloTime });
      this.update();
    }
  }

  private update(): void {
    const now = Date.now();
    const halos = new Map<string, Halo>();
    for (const [key, { uid, until }] of this.changed) {
      const name = this.names.get(uid);
      if (until <= now) {
        this.changed.delete(key);
      } else if (name) {
        halos.set(key, this.haloFor(key, { name, color: personColor(uid), verb: 'changed' }));
      }
    }
    for (const { uid, name, selected } of this.others) {
      for (const id of selected) {
        const key = this.keyOf(id);
        halos.set(key, this.haloFor(key, { name, color: personColor(uid), verb: 'holds' }));
      }
    }
    this.halos = halos;

    clearTimeout(this.timer);
    if (this.changed.size > 0) {
      this.timer = setTimeout(() => this.update(), 1000);
    }
    for (const listener of this.listeners) {
      listener();
    }
  }

  // The same object as before if nothing has changed, so that its node is not drawn again.
  private haloFor(key: string, halo: Halo): Halo {
    const before = this.halos.get(key);

    return before && before.name === halo.name && before.verb === halo.verb ? before : halo;
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

type Shown = { cursor: Point | null; selected: string[] };

/** PresenceSender shows this person's cursor and selection to the others, a few times a second and only while there are others. */
export class PresenceSender {
  private shown: Shown = { cursor: null, selected: [] };
  private timer: ReturnType<typeof setTimeout> | undefined;
  private dirty = false;

  constructor(
    private readonly send: (shown: Shown) => void,
    private readonly hasOthers: () => boolean,
  ) {}

  /** show notes what the others should see. */
  show(change: Partial<Shown>): void {
    this.shown = { ...this.shown, ...change };
    this.dirty = true;
    this.flush();
  }

  private flush(): void {
    if (this.timer || !this.dirty || !this.hasOthers()) {
      return;
    }
    this.dirty = false;
    this.send(this.shown);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.flush();
    }, 200);
  }

  /** greet sends what is shown now, because somebody has come. */
  greet(): void {
    this.dirty = true;
    this.flush();
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
