import { type ServerEvent, type StreamOptions } from './events.js';
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
export type BoardEvent = ServerEvent<'nodes', Schemas['BoardChange']> | ServerEvent<'board' | 'reset' | 'deleted', Schemas['BoardSummary']>;
/** Boards arrange uploads, results, texts and runs. */
export declare class Boards {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists the account's boards. */
    list(query?: Query<'listBoards'>, options?: CallOptions): Pages<Schemas['BoardSummary']>;
    /** create creates a board. */
    create(draft: Body<'createBoard'>, options?: CallOptions): Promise<Schemas['Board']>;
    /** get reads a board with a page of its nodes. */
    get(board_id: string, query?: Query<'getBoard'> & {
        cursor?: string;
    }, options?: CallOptions): Promise<Schemas['Board']>;
    /** rename renames a board. */
    rename(board_id: string, draft: Body<'renameBoard'>, options?: ChangeOptions): Promise<Schemas['Board']>;
    /** delete moves a board to the trash. */
    delete(board_id: string, options?: ChangeOptions): Promise<undefined>;
    /** restore takes a board back from the trash. */
    restore(board_id: string, options?: CallOptions): Promise<Schemas['Board']>;
    /** addNode adds a node. */
    addNode(board_id: string, draft: Body<'addNode'>, options?: ChangeOptions): Promise<Schemas['Node']>;
    /** changeNodes changes several nodes at once. */
    changeNodes(board_id: string, changes: Body<'changeNodes'>, options?: ChangeOptions): Promise<Result<'changeNodes'>>;
    /** changeNode changes one node. */
    changeNode(board_id: string, node_id: string, change: Body<'changeNode'>, options?: ChangeOptions): Promise<Schemas['Node']>;
    /** deleteNode deletes a node. */
    deleteNode(board_id: string, node_id: string, options?: ChangeOptions): Promise<undefined>;
    /** setPresence says what the caller looks at, for the other people on the board. */
    setPresence(board_id: string, draft: Body<'setPresence'>, options?: CallOptions): Promise<undefined>;
    /** events yields the changes of a board until it is deleted. It connects again when the stream breaks. */
    events(board_id: string, options?: StreamOptions): AsyncGenerator<BoardEvent>;
}
/** AccountEvent is an event of an account's stream. */
export type AccountEvent = ServerEvent<'run', Schemas['Generation']> | ServerEvent<'preview', Schemas['RunPreview']> | ServerEvent<'balance', Schemas['Balance']> | ServerEvent<'board' | 'deleted', Schemas['BoardSummary']> | ServerEvent<'nodes', Schemas['BoardChange']> | ServerEvent<'presence', Schemas['BoardPresence']> | ServerEvent<'reset', Schemas['EventReset']>;
/** AccountEvents is the stream of everything that changes in an account (`/events`). */
export declare class AccountEvents {
    private readonly transport;
    constructor(transport: Transport);
    /** stream yields events until the signal aborts or the loop is left. It connects again when the stream breaks. */
    stream(query?: Query<'streamEvents'>, options?: StreamOptions): AsyncGenerator<AccountEvent>;
}
export {};
