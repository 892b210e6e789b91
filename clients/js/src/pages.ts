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
export class Pages<T, P extends Page<T> = Page<T>> implements AsyncIterable<T> {
  constructor(private readonly read: (cursor: string | undefined) => Promise<P>) {}

  /** page reads one page: the first, or the one at a cursor. */
  page(cursor?: string): Promise<P> {
    return this.read(cursor);
  }

  /** pages iterates over the pages. */
  async *pages(): AsyncGenerator<P, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.read(cursor);
      yield page;
      cursor = page.has_more ? (page.next_cursor ?? undefined) : undefined;
    } while (cursor !== undefined);
  }

  /** all reads the whole list, or its first items up to a limit. */
  async all(limit = Number.POSITIVE_INFINITY): Promise<T[]> {
    const items: T[] = [];
    for await (const item of this) {
      if (items.length >= limit) {
        break;
      }
      items.push(item);
    }
    return items;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) {
      yield* page.data;
    }
  }
}
