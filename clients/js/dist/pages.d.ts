/** Page is one page of a list. */
export interface Page<T> {
    data: T[];
    has_more: boolean;
    next_cursor: string | null;
}
/**
 * Pages is a list that the service sends page by page. Iterate over it for all items (`for await (const tool of
 * client.tools.list())`), over `pages()` for whole pages, or call `page()` for one page.
 */
export declare class Pages<T, P extends Page<T> = Page<T>> implements AsyncIterable<T> {
    private readonly read;
    constructor(read: (cursor: string | undefined) => Promise<P>);
    /** page reads one page: the first, or the one at a cursor. */
    page(cursor?: string): Promise<P>;
    /** pages iterates over the pages. */
    pages(): AsyncGenerator<P, void, undefined>;
    /** all reads the whole list, or its first items up to a limit. */
    all(limit?: number): Promise<T[]>;
    [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined>;
}
