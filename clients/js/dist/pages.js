/**
 * Pages is a list that the service sends page by page. Iterate over it for all items (`for await (const tool of
 * client.tools.list())`), over `pages()` for whole pages, or call `page()` for one page.
 */
export class Pages {
    read;
    constructor(read) {
        this.read = read;
    }
    /** page reads one page: the first, or the one at a cursor. */
    page(cursor) {
        return this.read(cursor);
    }
    /** pages iterates over the pages. */
    async *pages() {
        let cursor;
        do {
            const page = await this.read(cursor);
            yield page;
            cursor = page.has_more ? (page.next_cursor ?? undefined) : undefined;
        } while (cursor !== undefined);
    }
    /** all reads the whole list, or its first items up to a limit. */
    async all(limit = Number.POSITIVE_INFINITY) {
        const items = [];
        for await (const item of this) {
            if (items.length >= limit) {
                break;
            }
            items.push(item);
        }
        return items;
    }
    async *[Symbol.asyncIterator]() {
        for await (const page of this.pages()) {
            yield* page.data;
        }
    }
}
