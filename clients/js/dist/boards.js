import { followStream } from './events.js';
import { Pages } from './pages.js';
/** Boards arrange uploads, results, texts and runs. */
export class Boards {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists the account's boards. */
    list(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('listBoards', { query: { ...query, cursor }, options }));
    }
    /** create creates a board. */
    create(draft, options = {}) {
        return this.transport.call('createBoard', { json: draft, options });
    }
    /** get reads a board with a page of its nodes. */
    get(board_id, query = {}, options = {}) {
        return this.transport.call('getBoard', { path: { board_id }, query, options });
    }
    /** rename renames a board. */
    rename(board_id, draft, options = {}) {
        return this.transport.call('renameBoard', { path: { board_id }, json: draft, ...changeOf(options) });
    }
    /** delete moves a board to the trash. */
    delete(board_id, options = {}) {
        return this.transport.call('deleteBoard', { path: { board_id }, ...changeOf(options) });
    }
    /** restore takes a board back from the trash. */
    restore(board_id, options = {}) {
        return this.transport.call('restoreBoard', { path: { board_id }, options });
    }
    /** addNode adds a node. */
    addNode(board_id, draft, options = {}) {
        return this.transport.call('addNode', { path: { board_id }, json: draft, ...changeOf(options) });
    }
    /** changeNodes changes several nodes at once. */
    changeNodes(board_id, changes, options = {}) {
        return this.transport.call('changeNodes', { path: { board_id }, json: changes, ...changeOf(options) });
    }
    /** changeNode changes one node. */
    changeNode(board_id, node_id, change, options = {}) {
        return this.transport.call('changeNode', { path: { board_id, node_id }, json: change, ...changeOf(options) });
    }
    /** deleteNode deletes a node. */
    deleteNode(board_id, node_id, options = {}) {
        return this.transport.call('deleteNode', { path: { board_id, node_id }, ...changeOf(options) });
    }
    /** setPresence says what the caller looks at, for the other people on the board. */
    setPresence(board_id, draft, options = {}) {
        return this.transport.call('setPresence', { path: { board_id }, json: draft, options });
    }
    /** events yields the changes of a board until it is deleted. It connects again when the stream breaks. */
    events(board_id, options = {}) {
        const request = { path: { board_id }, options };
        const isLast = (event) => event.name === 'deleted';
        const events = followStream(this.transport, 'streamBoard', request, options.lastEventID ?? '', isLast);
        return events;
    }
}
function changeOf(options) {
    const headers = options.revision === undefined ? {} : { 'If-Match': `"${options.revision}"` };
    return { headers, options };
}
/** AccountEvents is the stream of everything that changes in an account (`/events`). */
export class AccountEvents {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** stream yields events until the signal aborts or the loop is left. It connects again when the stream breaks. */
    stream(query = {}, options = {}) {
        const request = { query, options };
        const events = followStream(this.transport, 'streamEvents', request, options.lastEventID ?? '', () => false);
        return events;
    }
}
