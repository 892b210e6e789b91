import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Changes, type ChangesAnswer, type Notice, SyncError, type SyncState } from './exchange';
import type { NodesChange } from './mirror';
import type { BoardNode, Draft, Fields, ServerNode } from './model';
import { BoardSync } from './sync';

/** random returns numbers that are the same at each run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

/** Service does what the real one does with nodes: all changes of a request or none, and one revision for each. */
class Service {
  revision = 1;
  nodes = new Map<string, ServerNode>();
  private listeners = new Set<(change: NodesChange) => void>();
  private count = 0;

  addNode(draft: Draft, uid: string | null = null): ServerNode {
    this.count += 1;
    const node: ServerNode = {
      id: `server-${this.count}`,
      kind: draft.kind,
      ref: draft.ref ?? null,
      text: draft.text ?? '',
      x: draft.x,
      y: draft.y,
      width: draft.width ?? 0,
      height: draft.height ?? 0,
      z: draft.z ?? this.count,
      created: '2026-01-01T00:00:00Z',
      revision: this.revision,
      uid,
      missing: false,
      item: null,
      status: null,
    };
    this.nodes.set(node.id, node);
    return node;
  }

  change(changes: Changes, ifMatch: number | undefined, uid: string): ChangesAnswer {
    if (ifMatch !== undefined && ifMatch !== this.revision) {
      throw new SyncError({ kind: 'stale', revision: this.revision });
    }
    const fields = [
      ...changes.update.flatMap(({ id }, at) => (this.nodes.has(id) ? [] : [`update.${at}.id`])),
      ...changes.delete.flatMap((id, at) => (this.nodes.has(id) ? [] : [`delete.${at}`])),
    ].map((path) => ({ path, message: 'There is no such node on this board.' }));
    if (fields.length > 0) {
      throw new SyncError({ kind: 'invalid', fields, message: 'The changes are invalid.' });
    }

    this.revision += 1;
    const created = changes.create.map((draft) => this.addNode(draft, uid));
    const updated = changes.update.map(({ id, ...values }) => {
      const node = { ...(this.nodes.get(id) as ServerNode), ...values, revision: this.revision, uid };
      this.nodes.set(id, node);
      return node;
    });
    for (const id of changes.delete) {
      this.nodes.delete(id);
    }
    for (const listener of this.listeners) {
      listener({ revision: this.revision, put: [...created, ...updated], deleted: changes.delete });
    }
    return { revision: this.revision, created, updated, deleted: changes.delete };
  }

  follow(listener: (change: NodesChange) => void): void {
    this.listeners.add(listener);
  }
}

type Line = {
  /** Milliseconds that a request, its answer or an event take. */
  delay: () => number;
  /** Whether a request is lost before the service gets it, or its answer afterwards. */
  loses: () => 'request' | 'answer' | undefined;
};

const goodLine: Line = { delay: () => 5, loses: () => undefined };
const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Client {
  readonly notices: Notice[] = [];
  readonly sync: BoardSync;
  requests = 0;
  line: Line;
  state: SyncState = { state: 'saved', waiting: 0 };

  constructor(
    readonly service: Service,
    readonly uid: string,
    line: Line = goodLine,
  ) {
    this.line = line;
    this.sync = new BoardSync({
      uid,
      onChange: () => {},
      onState: (state) => {
        this.state = state;
      },
      onNotice: (notice) => this.notices.push(notice),
      transport: {
        read: async () => {
          await wait(this.line.delay());
          const state = { nodes: [...service.nodes.values()], revision: service.revision };
          await wait(this.line.delay());
          return state;
        },
        change: async (changes, ifMatch) => {
          this.requests += 1;
          const lost = this.line.loses();
          await wait(this.line.delay());
          if (lost === 'request') {
            throw new SyncError({ kind: 'away' });
          }
          const answer = service.change(structuredClone(changes), ifMatch, uid);
          await wait(this.line.delay());
          if (lost === 'answer') {
            throw new SyncError({ kind: 'away' });
          }
          return answer;
        },
      },
    });
    this.sync.load([...service.nodes.values()], service.revision);
    // Events come in order, each some time after the change.
    let last = Promise.resolve();
    service.follow((change) => {
      const late = wait(this.line.delay());
      last = last.then(() => late).then(() => this.sync.takeChange(change));
    });
  }

  shown(): Record<string, Partial<BoardNode>> {
    return stateOf(this.sync.all());
  }
}

function stateOf(nodes: Array<ServerNode | BoardNode>): Record<string, Partial<BoardNode>> {
  return Object.fromEntries(
    nodes.map(({ id, kind, text, x, y, width, height, z }) => [String(id), { kind, text, x, y, width, height, z }]),
  );
}

const text = (x: number, y: number, words = 'words'): Draft => ({ kind: 'TEXT', text: words, x, y });

const settle = () => vi.advanceTimersByTimeAsync(300_000);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('BoardSync', () => {
  it('shows a change at once and sends several as one request', async () => {
    const service = new Service();
    const a = service.addNode(text(0, 0));
    const b = service.addNode(text(10, 0));
    const client = new Client(service, 'anna');

    client.sync.update([[a.id, { x: 5 }]]);
    client.sync.update([[a.id, { x: 7, y: 2 }]]);
    client.sync.update([[b.id, { text: 'new' }]]);
    expect(client.sync.get(a.id)).toMatchObject({ x: 7, y: 2 });
    expect(service.nodes.get(a.id)?.x).toBe(0);
    expect(client.state.state).toBe('saving');

    await settle();
    expect(client.requests).toBe(1);
    expect(service.nodes.get(a.id)).toMatchObject({ x: 7, y: 2 });
    expect(service.nodes.get(b.id)?.text).toBe('new');
    expect(client.state).toMatchObject({ state: 'saved', waiting: 0 });
  });

  it('sends at most four requests a second during a drag, and its end', async () => {
    const service = new Service();
    const node = service.addNode(text(0, 0));
    const client = new Client(service, 'anna');

    for (let step = 1; step <= 120; step++) {
      client.sync.hold([[node.id, { x: step }]]);
      await vi.advanceTimersByTimeAsync(1000 / 60);
    }
    expect(client.requests).toBeGreaterThan(5);
    expect(client.requests).toBeLessThanOrEqual(8);
    client.sync.release();
    await settle();
    expect(service.nodes.get(node.id)?.x).toBe(120);
  });

  it('keeps a node where I drag it while another person moves it, and their text', async () => {
    const service = new Service();
    const node = service.addNode(text(0, 0));
    const anna = new Client(service, 'anna');
    const bert = new Client(service, 'bert');

    anna.sync.hold([[node.id, { x: 50, y: 50 }]]);
    bert.sync.update([[node.id, { x: -9, text: 'from bert' }]]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(anna.sync.get(node.id)).toMatchObject({ x: 50, y: 50, text: 'from bert' });

    anna.sync.release();
    await settle();
    expect(anna.shown()).toEqual(bert.shown());
    expect(bert.sync.get(node.id)).toMatchObject({ x: 50, y: 50, text: 'from bert' });
  });

  it('shows a new node once, under one key, whichever comes first: answer or event', async () => {
    for (const delays of [
      [1, 1, 1],
      [1, 200, 1],
      [1, 1, 200],
    ]) {
      const service = new Service();
      const client = new Client(service, 'anna');
      let at = 0;
      client.line = { ...goodLine, delay: () => delays[at++ % delays.length] ?? 1 };
      const key = client.sync.create(text(3, 4));
      client.sync.update([[key, { x: 30 }]]);
      for (let step = 0; step < 60; step++) {
        await vi.advanceTimersByTimeAsync(20);
        expect(client.sync.all().map((node) => node.key)).toEqual([key]);
      }
      expect(client.sync.get(key)).toMatchObject({ id: [...service.nodes.keys()][0], x: 30 });
    }
  });

  it('moves, then deletes, a node whose creation is under way', async () => {
    const service = new Service();
    const client = new Client(service, 'anna', { ...goodLine, delay: () => 100 });
    const moved = client.sync.create(text(0, 0));
    const gone = client.sync.create(text(1, 1));
    await vi.advanceTimersByTimeAsync(200);
    client.sync.update([[moved, { x: 9 }]]);
    client.sync.remove([gone]);
    expect(client.sync.all()).toHaveLength(1);
    await settle();
    expect([...service.nodes.values()].map((node) => node.x)).toEqual([9]);
    expect(client.shown()).toEqual(stateOf([...service.nodes.values()]));
  });

  it('adds a node once, although the answer was lost', async () => {
    const service = new Service();
    const client = new Client(service, 'anna');
    let losses = 0;
    client.line = { ...goodLine, loses: () => (losses++ < 2 ? 'answer' : undefined) };
    const key = client.sync.create(text(3, 4));
    await settle();
    expect(service.nodes.size).toBe(1);
    expect(client.sync.all().map((node) => node.key)).toEqual([key]);
    expect(client.state.state).toBe('saved');
  });

  it('keeps the queue while the service is away, says so, and goes on by itself', async () => {
    const service = new Service();
    const node = service.addNode(text(0, 0));
    const client = new Client(service, 'anna', { ...goodLine, loses: () => 'request' });
    client.sync.update([[node.id, { x: 1 }]]);
    await vi.advanceTimersByTimeAsync(400);
    expect(client.state).toMatchObject({ state: 'away', waiting: 1 });
    client.sync.update([[node.id, { y: 2 }]]);
    client.line = goodLine;
    client.sync.sendNow();
    await vi.advanceTimersByTimeAsync(50);
    expect(service.nodes.get(node.id)).toMatchObject({ x: 1, y: 2 });
    expect(client.state.state).toBe('saved');
  });

  it('drops changes of nodes that another person deleted, and keeps the rest of the request', async () => {
    const service = new Service();
    const a = service.addNode(text(0, 0));
    const b = service.addNode(text(1, 1));
    const client = new Client(service, 'anna', { ...goodLine, delay: () => 60 });
    client.sync.update([
      [a.id, { x: 5 }],
      [b.id, { x: 6 }],
    ]);
    service.change({ create: [], update: [], delete: [a.id] }, undefined, 'bert');
    await settle();
    expect(client.shown()).toEqual(stateOf([...service.nodes.values()]));
    expect(service.nodes.get(b.id)?.x).toBe(6);
    expect(client.notices).toEqual([]);
    expect(client.state.state).toBe('saved');
  });

  it('keeps a node that another person changed while I deleted it', async () => {
    const service = new Service();
    const node = service.addNode(text(0, 0));
    const other = service.addNode(text(1, 1));
    const client = new Client(service, 'anna', { ...goodLine, delay: () => 80 });
    client.sync.remove([node.id, other.id]);
    expect(client.sync.all()).toEqual([]);
    service.change({ create: [], update: [{ id: node.id, x: 77 }], delete: [] }, undefined, 'bert');
    await settle();
    expect(client.notices).toEqual([{ kind: 'kept', uid: 'bert' }]);
    expect(client.sync.all().map((one) => one.x)).toEqual([77]);
    expect([...service.nodes.keys()]).toEqual([node.id]);
  });

  it('brings a deleted node back under its key', async () => {
    const service = new Service();
    const node = service.addNode(text(0, 0, 'back'));
    const client = new Client(service, 'anna');
    client.sync.remove([node.id]);
    await settle();
    client.sync.restore(node.id, text(0, 0, 'back'));
    await settle();
    expect(client.sync.get(node.id)?.id).toBe([...service.nodes.keys()][0]);
    client.sync.update([[node.id, { x: 12 }]]);
    await settle();
    expect([...service.nodes.values()].map((one) => one.x)).toEqual([12]);
  });

  it('replaces a run by its results once, although two people see it end', async () => {
    const service = new Service();
    const run = service.addNode({ kind: 'GENERATION', ref: 'run', x: 0, y: 0 });
    const anna = new Client(service, 'anna', { ...goodLine, delay: () => 40 });
    const bert = new Client(service, 'bert', { ...goodLine, delay: () => 30 });
    const results: Draft[] = [{ kind: 'LIBRARY_REF', ref: 'a:1', x: 0, y: 0 }];
    anna.sync.swap(run.id, results);
    bert.sync.swap(run.id, results);
    await settle();
    expect([...service.nodes.values()].map((node) => node.ref)).toEqual(['a:1']);
    expect(anna.shown()).toEqual(bert.shown());
    expect([...anna.notices, ...bert.notices]).toEqual([]);
  });

  it('reads the board anew and keeps what waits', async () => {
    const service = new Service();
    const kept = service.addNode(text(0, 0));
    const gone = service.addNode(text(1, 1));
    const client = new Client(service, 'anna');
    service.nodes.delete(gone.id);
    service.revision += 5;
    const added = service.addNode(text(2, 2));
    client.sync.update([[kept.id, { x: 9 }]]);
    await Promise.all([client.sync.readAgain(), vi.advanceTimersByTimeAsync(30)]);
    expect(client.sync.all().map((node) => node.key)).toEqual([kept.id, added.id]);
    expect(client.sync.get(kept.id)?.x).toBe(9);
    await settle();
    expect(service.nodes.get(kept.id)?.x).toBe(9);
  });

  it('stops and shows the stored board when the board is gone', async () => {
    const service = new Service();
    const node = service.addNode(text(0, 0));
    const client = new Client(service, 'anna');
    vi.spyOn(service, 'change').mockImplementation(() => {
      throw new SyncError({ kind: 'gone', message: 'There is no such board.' });
    });
    client.sync.update([[node.id, { x: 5 }]]);
    await settle();
    expect(client.state).toMatchObject({ state: 'gone', message: 'There is no such board.' });
    expect(client.sync.get(node.id)?.x).toBe(0);
  });
});

describe('two people', () => {
  // Each takes steps of all kinds over lines that are slow and lose requests and answers.
  it.each(Array.from({ length: 25 }, (_, seed) => seed + 1))(
    'end with the same board after 200 moves each (%i)',
    async (seed) => {
      const next = random(seed * 7919);
      const service = new Service();
      for (let at = 0; at < 20; at++) {
        service.addNode(text(at * 10, at * 10, `node ${at}`));
      }
      const line = (): Line => ({
        delay: () => Math.floor(next() * 180),
        loses: () => (next() < 0.04 ? 'request' : next() < 0.04 ? 'answer' : undefined),
      });
      const clients = [new Client(service, 'anna', line()), new Client(service, 'bert', line())];
      const removed = new Map<Client, Array<[string, BoardNode]>>(clients.map((client) => [client, []]));
      const moves = new Map(clients.map((client) => [client, 0]));

      while ([...moves.values()].some((count) => count < 200)) {
        for (const client of clients) {
          const nodes = client.sync.all();
          const node = nodes[Math.floor(next() * nodes.length)];
          const fields: Fields = { x: Math.floor(next() * 1000), y: Math.floor(next() * 1000) };
          const choice = next();
          if (!node || choice < 0.08) {
            client.sync.create(text(fields.x ?? 0, fields.y ?? 0, `added ${Math.floor(next() * 1e9)}`));
          } else if (choice < 0.12) {
            removed.get(client)?.push([node.key, node]);
            client.sync.remove([node.key]);
          } else if (choice < 0.15) {
            const [key, before] = removed.get(client)?.pop() ?? [];
            if (key && before) {
              client.sync.restore(key, { kind: 'TEXT', text: before.text, x: before.x, y: before.y, z: before.z });
            }
          } else if (choice < 0.5) {
            client.sync.hold([[node.key, fields]]);
            await vi.advanceTimersByTimeAsync(next() * 60);
            client.sync.release();
          } else {
            client.sync.update([[node.key, choice < 0.6 ? { text: `said ${choice}` } : fields]]);
          }
          moves.set(client, (moves.get(client) ?? 0) + 1);
          if (next() < 0.02) {
            void client.sync.readAgain();
          }
        }
        await vi.advanceTimersByTimeAsync(next() * 120);
      }

      await settle();
      const stored = stateOf([...service.nodes.values()]);
      for (const client of clients) {
        expect(client.state).toMatchObject({ state: 'saved', waiting: 0 });
        expect(client.shown()).toEqual(stored);
        expect(client.sync.all()).toHaveLength(service.nodes.size);
      }
      const added = [...service.nodes.values()].map((node) => node.text).filter((words) => words.startsWith('added'));
      expect(new Set(added).size).toBe(added.length);
    },
  );
});
