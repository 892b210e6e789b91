import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { CallOptions, Query, Result, Transport } from './transport.js';
/** Tool is a tool of the catalog. */
export type Tool = components['schemas']['Tool'];
/** ToolDetail is a tool with its form. */
export type ToolDetail = components['schemas']['ToolDetail'];
/** Tools is the catalog (`/tools`, `/tool-tags`, `/kits`). */
export declare class Tools {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists the tools that the account may use. */
    list(query?: Query<'listTools'>, options?: CallOptions): Pages<Tool>;
    /** get reads a tool with its form, by its id or its slug. */
    get(tool_id: string, options?: CallOptions): Promise<ToolDetail>;
    /** listTags lists all tags of tools. */
    listTags(options?: CallOptions): Promise<Result<'listToolTags'>>;
    /** listKits lists the kits: tools that belong together. */
    listKits(options?: CallOptions): Promise<Result<'listKits'>>;
}
