// Where tiles are. All tiles are squares of one size, in rows, so that the place of each is known before it is read.

export type Frame = {
  /** The width and the height of the area that scrolls. */
  width: number;
  height: number;
  /** The room around the tiles. */
  left: number;
  right: number;
  top: number;
  bottom: number;
  gap: number;
  /** The width that a tile should have, about. */
  tile: number;
};

export type Layout = {
  columns: number;
  /** The width and height of a tile. */
  side: number;
  /** The distance from one row to the next. */
  step: number;
  top: number;
  bottom: number;
  height: number;
};

/** layOut chooses the number of columns whose tiles come nearest to the wanted width. */
export function layOut(frame: Frame): Layout {
  const room = Math.max(1, frame.width - frame.left - frame.right);
  const columns = Math.max(2, Math.round((room + frame.gap) / (frame.tile + frame.gap)));
  const side = (room - frame.gap * (columns - 1)) / columns;

  return {
    columns,
    side,
    step: side + frame.gap,
    top: frame.top,
    bottom: frame.bottom,
    height: frame.height,
  };
}

/** heightOf returns the height of all rows. */
export function heightOf(layout: Layout, total: number): number {
  return layout.top + Math.ceil(total / layout.columns) * layout.step + layout.bottom;
}

/** topOfRow returns where a row begins. */
export function topOfRow(layout: Layout, row: number): number {
  return layout.top + row * layout.step;
}

export type Rows = { first: number; last: number };

/** rowsBetween returns the rows that are at least in part between two heights; `last` is the last one. */
export function rowsBetween(layout: Layout, total: number, from: number, to: number): Rows {
  const end = Math.ceil(total / layout.columns) - 1;
  const first = Math.floor((from - layout.top) / layout.step);
  const last = Math.floor((to - layout.top) / layout.step);

  return { first: Math.max(0, Math.min(first, end)), last: Math.max(-1, Math.min(last, end)) };
}

/** coversRows tells whether some rows have all of some others. */
export function coversRows(rows: Rows, others: Rows): boolean {
  return rows.first <= others.first && rows.last >= others.last;
}

/** moveRows returns which rows to draw after those that are drawn: all that are needed, and of the drawn ones those that may stay. Where a row neither has to come nor to go nothing is drawn anew. */
export function moveRows(drawn: Rows, needed: Rows, allowed: Rows): Rows {
  if (drawn.last < needed.first || drawn.first > needed.last) {
    return needed;
  }
  const first = Math.min(needed.first, Math.max(drawn.first, allowed.first));
  const last = Math.max(needed.last, Math.min(drawn.last, allowed.last));

  return first === drawn.first && last === drawn.last ? drawn : { first, last };
}

/** indexesOf returns the numbers of the tiles in some rows; `to` is the one after the last. */
export function indexesOf(layout: Layout, total: number, rows: Rows): { from: number; to: number } {
  return { from: rows.first * layout.columns, to: Math.min(total, (rows.last + 1) * layout.columns) };
}

/** scrollTopFor returns where to scroll so that a tile is in view: as little as needed, or with its row in the middle. */
export function scrollTopFor(layout: Layout, index: number, scrollTop: number, center = false): number {
  const top = topOfRow(layout, Math.floor(index / layout.columns));
  if (center) {
    return Math.max(0, top - (layout.height - layout.side) / 2);
  }
  if (top < scrollTop + layout.top) {
    return Math.max(0, top - layout.top);
  }
  const hidden = top + layout.side + layout.bottom - (scrollTop + layout.height);

  return hidden > 0 ? scrollTop + hidden : scrollTop;
}

/** isInView reports whether a tile is in view, at least in part. */
function isInView(layout: Layout, index: number, scrollTop: number): boolean {
  const top = topOfRow(layout, Math.floor(index / layout.columns));

  return index >= 0 && top + layout.side > scrollTop && top < scrollTop + layout.height;
}

/** firstInView returns the first tile of the first row that is not cut off at the top. */
function firstInView(layout: Layout, total: number, scrollTop: number): number {
  const last = Math.ceil(total / layout.columns) - 1;
  const row = Math.ceil((scrollTop - layout.top) / layout.step);

  return Math.max(0, Math.min(row, last)) * layout.columns;
}

/**
 * moveIndex returns the tile to which a key leads from the active one, or undefined if the key moves nothing.
 * Where the timeline or the wheel has moved the view away from the active tile, keys go on from what is in view.
 */
export function moveIndex(
  key: string,
  index: number,
  total: number,
  layout: Layout,
  scrollTop: number,
): number | undefined {
  const screen = Math.max(1, Math.floor(layout.height / layout.step) - 1) * layout.columns;
  const steps: Record<string, number> = {
    ArrowLeft: index - 1,
    ArrowRight: index + 1,
    ArrowUp: index - layout.columns,
    ArrowDown: index + layout.columns,
    PageUp: index - screen,
    PageDown: index + screen,
    Home: 0,
    End: total - 1,
  };
  const next = steps[key];
  if (next === undefined || total === 0) {
    return undefined;
  }
  if (key === 'Home' || key === 'End') {
    return next;
  }
  if (!isInView(layout, index, scrollTop)) {
    return firstInView(layout, total, scrollTop);
  }
  if (key === 'ArrowUp' && next < 0) {
    return index;
  }
  return Math.max(0, Math.min(total - 1, next));
}
