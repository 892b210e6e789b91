import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { CallOptions, Query, Result, Transport } from './transport.js';

/** Tool is a tool of the catalog. */
export type Tool = components['schemas']['Tool'];
/** ToolDetail is a tool with its form. */
export type ToolDetail = components['schemas']['ToolDetail'];

/** Tools is the catalog (`/tools`, `/tool-tags`, `/kits`). */
export class Tools {
  constructor(private readonly transport: Transport) {}

  /** list lists the tools that the account may use. */
  list(query: Query<'listTools'> = {}, options: CallOptions = {}): Pages<Tool> {
    return new Pages((cursor) => this.transport.call('listTools', { query: { ...query, cursor }, options }));
  }

  /** get reads a tool with its form, by its id or its slug. */
  get(tool_id: string, options: CallOptions = {}): Promise<ToolDetail> {
    return this.transport.call('getTool', { path: { tool_id }, options });
  }

  /** listTags lists all tags of tools. */
  listTags(options: CallOptions = {}): Promise<Result<'listToolTags'>> {
    return this.transport.call('listToolTags', { options });
  }

  /** listKits lists the kits: tools that belong together. */
  listKits(options: CallOptions = {}): Promise<Result<'listKits'>> {
    return this.transport.call('listKits', { options });
  }
}
