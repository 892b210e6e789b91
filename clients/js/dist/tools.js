import { Pages } from './pages.js';
/** Tools is the catalog (`/tools`, `/tool-tags`, `/kits`). */
export class Tools {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists the tools that the account may use. */
    list(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('listTools', { query: { ...query, cursor }, options }));
    }
    /** get reads a tool with its form, by its id or its slug. */
    get(tool_id, options = {}) {
        return this.transport.call('getTool', { path: { tool_id }, options });
    }
    /** listTags lists all tags of tools. */
    listTags(options = {}) {
        return this.transport.call('listToolTags', { options });
    }
    /** listKits lists the kits: tools that belong together. */
    listKits(options = {}) {
        return this.transport.call('listKits', { options });
    }
}
