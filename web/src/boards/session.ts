import { api, dataOf } from '../api/client';
import { followEvents, type ServerEvent } from '../api/events';
import type { Run } from '../data/runs';
import { addressOf } from '../routes';
import { BoardEditor } from './editor';
import type { Notice, SyncState } from './exchange';
import type { NodesChange } from './mirror';
import type { BoardNode, BoardSummary, ServerNode, Viewer } from './model';
import { Presence, PresenceSender } from './presence';
import { RunBook, resultDrafts } from './runbook';
import { BoardSync } from './sync';
import { boardTransport, failureOf, readBoard, sendLast } from './transport';

type Options = {
  boardId: string;
  teamId: string | undefined;
  uid: string;
  onBoard: (board: BoardSummary) => void;
  onState: (state: SyncState) => void;
  onNotice: (notice: Notice) => void;
};

// A tab in the background gives its stream back after this time: a browser has six connections for all of its tabs.
const hiddenTime = 20_000;
const othersWait = 4000;

/** BoardSession is an open board: its nodes, its stream of events, the people at it and the runs on it. */
export class BoardSession {
  readonly sync: BoardSync;
  readonly editor: BoardEditor;
  readonly presence: Presence;
  readonly sender: PresenceSender;
  readonly runs = new RunBook();
  private readonly listeners = new Set<(keys: Set<string>) => void>();
  private readonly swapping = new Set<string>();
  private stream: AbortController | undefined;
  private state: SyncState = { state: 'saved', waiting: 0 };
  private closed = false;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: Options) {
    const { boardId, teamId, uid } = options;
    this.sync = new BoardSync({
      uid,
      transport: boardTransport(boardId, teamId),
      onChange: (keys) => this.takeKeys(keys),
      onState: (state) => this.takeState(state),
      onNotice: options.onNotice,
    });
    this.editor = new BoardEditor(this.sync);
    this.presence = new Presence(uid, (id) => this.sync.keyOf(id));
    const params = { path: { board_id: boardId }, query: { team_id: teamId } };
    this.sender = new PresenceSender(
      (shown) =>
        void api.PUT('/boards/{board_id}/presence', { params, body: shown }).catch(() => {
          // The next call shows it; nothing depends on it.
        }),
      () => this.presence.getOthers().length > 0,
    );
  }

  /** open reads the board and follows it. */
  async open(): Promise<void> {
    const { board, nodes, revision } = await readBoard(this.options.boardId, this.options.teamId);
    this.sync.load(nodes, revision);
    this.options.onBoard(board);
    document.addEventListener('visibilitychange', this.onVisibility);
    addEventListener('pagehide', this.onPageHide);
    addEventListener('beforeunload', this.onBeforeUnload);
    addEventListener('online', this.onOnline);
    this.follow();
    void this.readRuns(nodes);
  }

  /** subscribe calls the listener with the keys of nodes that have changed. */
  subscribe(listener: (keys: Set<string>) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  private takeKeys(keys: Set<string>): void {
    for (const listener of this.listeners) {
      listener(keys);
    }
  }

  private follow(): void {
    this.stream?.abort();
    this.stream = new AbortController();
    const url = addressOf('/api/v2/events', {
      team_id: this.options.teamId,
      board_id: this.options.boardId,
      board_revision: String(this.sync.revision),
    });
    void this.takeEvents(url, this.stream.signal);
  }

  private async takeEvents(url: string, signal: AbortSignal): Promise<void> {
    const onConnection = ({ open }: { open: boolean }) => (open ? this.sync.sendNow() : void this.checkAccess(signal));
    for await (const event of followEvents(url, { signal, onConnection })) {
      this.takeEvent(event);
    }
  }

  // A stream that ends may have been refused: then the board may not be seen any more.
  private async checkAccess(signal: AbortSignal): Promise<void> {
    const params = { path: { board_id: this.options.boardId }, query: { team_id: this.options.teamId, limit: 1 } };
    const failure = await api.GET('/boards/{board_id}', { params, signal }).then(() => undefined, failureOf);
    if (failure?.kind === 'refused' && !signal.aborted) {
      this.sync.stop();
      this.stream?.abort();
      this.options.onState({ state: 'refused', waiting: 0, message: failure.message });
    }
  }

  private takeEvent({ event, data }: ServerEvent): void {
    switch (event) {
      case 'nodes': {
        const change = JSON.parse(data) as NodesChange;
        this.sync.takeChange(change);
        for (const node of change.put) {
          if (node.uid) {
            this.presence.noteChange(this.sync.keyOf(node.id), node.uid);
          }
        }
        void this.readRuns(change.put);
        break;
      }
      case 'board':
      case 'deleted':
        this.options.onBoard(JSON.parse(data) as BoardSummary);
        break;
      case 'presence': {
        const before = this.presence.getOthers().length;
        this.presence.setPeople((JSON.parse(data) as { people: Viewer[] }).people);
        if (this.presence.getOthers().length > before) {
          this.sender.greet();
        }
        break;
      }
      case 'run':
        this.takeRun(JSON.parse(data) as Run);
        break;
      case 'balance':
        // All runs that go on were told before the balance: a run that was not has ended.
        void this.readRuns(this.sync.all().map((node) => ({ ...node, status: null })));
        break;
      case 'preview': {
        const preview = JSON.parse(data) as { request_id: string; url: string };
        this.runs.putPreview(preview.request_id, preview.url);
        break;
      }
      case 'reset':
        if ((JSON.parse(data) as { board_id: string | null }).board_id) {
          void this.sync.readAgain().catch(() => this.follow());
        }
        break;
    }
  }

  /** takeRun takes the state of a run; the results of one that has ended take its place on the board. */
  takeRun(run: Run): void {
    this.runs.put(run);
    if (run.status !== 'succeeded' || run.outputs.length === 0) {
      return;
    }
    for (const node of this.sync.all()) {
      if (node.kind === 'GENERATION' && node.ref === run.request_id && !this.swapping.has(node.key)) {
        this.swapping.add(node.key);
        // Whoever started the run replaces it; the others only if that person has left.
        const wait = run.uid === this.options.uid ? 0 : othersWait + Math.random() * othersWait;
        setTimeout(() => this.replaceRun(node.key, run), wait);
      }
    }
  }

  private replaceRun(key: string, run: Run): void {
    const node = this.sync.get(key);
    const drafts = node ? resultDrafts(node, run, this.editor) : [];
    if (drafts.length > 0) {
      this.sync.swap(key, drafts);
    }
  }

  // Reads runs that had ended before this page was opened; events tell the others.
  private async readRuns(nodes: Array<ServerNode | BoardNode>): Promise<void> {
    for (const { kind, ref, missing, status } of nodes) {
      if (kind !== 'GENERATION' || !ref || missing || status === 'pending' || this.runs.runOf(ref)) {
        continue;
      }
      const params = { path: { request_id: ref }, query: { team_id: this.options.teamId } };
      const answer = await api.GET('/generate/{request_id}', { params }).catch(() => undefined);
      if (answer) {
        this.takeRun(dataOf(answer));
      }
    }
  }

  private readonly onVisibility = () => {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) {
      this.hiddenTimer = setTimeout(() => {
        this.stream?.abort();
        this.stream = undefined;
      }, hiddenTime);
    } else if (!this.stream) {
      this.follow();
    }
  };

  private readonly onOnline = () => this.sync.sendNow();

  private readonly onPageHide = () => {
    for (let rest = this.sync.takeRest(); rest; rest = this.sync.takeRest()) {
      sendLast(this.options.boardId, this.options.teamId, rest);
    }
  };

  // The browser asks before a page goes whose changes the service cannot get now.
  private readonly onBeforeUnload = (event: BeforeUnloadEvent) => {
    if (this.state.state === 'away') {
      event.preventDefault();
    }
  };

  private takeState(state: SyncState): void {
    this.state = state;
    if (this.closed) {
      this.endWhenSaved();
    } else {
      this.options.onState(state);
    }
  }

  /** close ends the stream. What is not stored yet goes on being sent, also while the service is away. */
  close(): void {
    this.closed = true;
    this.stream?.abort();
    clearTimeout(this.hiddenTimer);
    this.presence.stop();
    this.sender.stop();
    document.removeEventListener('visibilitychange', this.onVisibility);
    this.sync.release();
    this.endWhenSaved();
  }

  private endWhenSaved(): void {
    if (this.state.state === 'saving' || this.state.state === 'away') {
      return;
    }
    this.sync.stop();
    removeEventListener('pagehide', this.onPageHide);
    removeEventListener('beforeunload', this.onBeforeUnload);
    removeEventListener('online', this.onOnline);
  }
}
