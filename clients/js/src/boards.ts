import { followStream, type ServerEvent, type StreamOptions } from './events.js';
import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { Body, CallOptions, Query, Result, Transport } from './transport.js';

type Schemas = components['schemas'];

/** ChangeOptions are the options of a change to a board. */
export interface ChangeOptions extends CallOptions {
  /** The `revision` that the change is based on; if the board has another one, the change is refused. */
  revision?: number;
}

/** BoardEvent is an event of a board's stream. */
export type BoardEvent =
  | ServerEvent<'nodes', Schemas['BoardChange']>
  | ServerEvent<'board' | 'reset' | 'deleted', Schemas['BoardSummary']>;

/** Boards arrange uploads, results, texts and runs. */
export class Boards {
  constructor(private readonly transport: Transport) {}

  /** list lists the account's boards. */
  list(query: Query<'listBoards'> = {}, options: CallOptions = {}): Pages<Schemas['BoardSummary']> {
    return new Pages((cursor) => this.transport.call('listBoards', { query: { ...query, cursor }, options }));
  }

  /** create creates a board. */
  create(draft: Body<'createBoard'>, options: CallOptions = {}): Promise<Schemas['Board']> {
    return this.transport.call('createBoard', { json: draft, options });
  }

  /** get reads a board with a page of its nodes. */
  get(
    board_id: string,
    query: Query<'getBoard'> & { cursor?: string } = {},
    options: CallOptions = {},
  ): Promise<Schemas['Board']> {
    return this.transport.call('getBoard', { path: { board_id }, query, options });
  }

  /** rename renames a board. */
  rename(board_id: string, draft: Body<'renameBoard'>, options: ChangeOptions = {}): Promise<Schemas['Board']> {
    return this.transport.call('renameBoard', { path: { board_id }, json: draft, ...changeOf(options) });
  }

  /** delete moves a board to the trash. */
  delete(board_id: string, options: ChangeOptions = {}): Promise<undefined> {
    return this.transport.call('deleteBoard', { path: { board_id }, ...changeOf(options) });
  }

  /** restore takes a board back from the trash. */
  restore(board_id: string, options: CallOptions = {}): Promise<Schemas['Board']> {
    return this.transport.call('restoreBoard', { path: { board_id }, options });
  }

  /** addNode adds a node. */
  addNode(board_id: string, draft: Body<'addNode'>, options: ChangeOptions = {}): Promise<Schemas['Node']> {
    return this.transport.call('addNode', { path: { board_id }, json: draft, ...changeOf(options) });
  }

  /** changeNodes changes several nodes at once. */
  changeNodes(
    board_id: string,
    changes: Body<'changeNodes'>,
    options: ChangeOptions = {},
  ): Promise<Result<'changeNodes'>> {
    return this.transport.call('changeNodes', { path: { board_id }, json: changes, ...changeOf(options) });
  }

  /** changeNode changes one node. */
  changeNode(
    board_id: string,
    node_id: string,
    change: Body<'changeNode'>,
    options: ChangeOptions = {},
  ): Promise<Schemas['Node']> {
    return this.transport.call('changeNode', { path: { board_id, node_id }, json: change, ...changeOf(options) });
  }

  /** deleteNode deletes a node. */
  deleteNode(board_id: string, node_id: string, options: ChangeOptions = {}): Promise<undefined> {
    return this.transport.call('deleteNode', { path: { board_id, node_id }, ...changeOf(options) });
  }

  /** setPresence says what the caller looks at, for the other people on the board. */
  setPresence(board_id: string, draft: Body<'setPresence'>, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('setPresence', { path: { board_id }, json: draft, options });
  }

  /** events yields the changes of a board until it is deleted. It connects again when the stream breaks. */
  events(board_id: string, options: StreamOptions = {}): AsyncGenerator<BoardEvent> {
    const request = { path: { board_id }, options };
    const isLast = (event: ServerEvent) => event.name === 'deleted';
    const events = followStream(this.transport, 'streamBoard', request, options.lastEventID ?? '', isLast);
    return events as AsyncGenerator<BoardEvent>;
  }
}

function changeOf(options: ChangeOptions): { headers: Record<string, string>; options: ChangeOptions } {
  const headers: Record<string, string> = options.revision === undefined ? {} : { 'If-Match': `"${options.revision}"` };
  return { headers, options };
}

/** AccountEvent is an event of an account's stream. */
export type AccountEvent =
  | ServerEvent<'run', Schemas['Generation']>
  | ServerEvent<'preview', Schemas['RunPreview']>
  | ServerEvent<'balance', Schemas['Balance']>
  | ServerEvent<'board' | 'deleted', Schemas['BoardSummary']>
  | ServerEvent<'nodes', Schemas['BoardChange']>
  | ServerEvent<'presence', Schemas['BoardPresence']>
  | ServerEvent<'reset', Schemas['EventReset']>;

/** AccountEvents is the stream of everything that changes in an account (`/events`). */
export class AccountEvents {
  constructor(private readonly transport: Transport) {}

  /** stream yields events until the signal aborts or the loop is left. It connects again when the stream breaks. */
  stream(query: Query<'streamEvents'> = {}, options: StreamOptions = {}): AsyncGenerator<AccountEvent> {
    const request = { query, options };
    const events = followStream(this.transport, 'streamEvents', request, options.lastEventID ?? '', () => false);
    return events as AsyncGenerator<AccountEvent>;
  }
}
