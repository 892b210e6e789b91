import type { Box, Fields, Point } from './model';

export type Edge = 'left' | 'right' | 'top' | 'bottom' | 'center' | 'middle';
export type Axis = 'across' | 'down';
type Rectangle = { x: number; y: number; width: number; height: number };

/** boundsOf returns the rectangle around boxes. */
export function boundsOf(boxes: Rectangle[]): Rectangle {
  if (boxes.length === 0) {
    return { x: 0, y: 0, width: 0, height: 0 };
  }
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));

  return { x, y, width: right - x, height: bottom - y };
}

/** roundPlace rounds to hundredths, so that sums of parts leave no endless numbers. */
const roundPlace = (place: number) => Math.round(place * 100) / 100;

/** alignBoxes returns the new places of boxes that share an edge or a middle line. */
export function alignBoxes(boxes: Box[], edge: Edge): Array<[string, Fields]> {
  const all = boundsOf(boxes);
  const place = (box: Box): Fields => {
    switch (edge) {
      case 'left':
        return { x: all.x };
      case 'right':
        return { x: roundPlace(all.x + all.width - box.width) };
      case 'center':
        return { x: roundPlace(all.x + (all.width - box.width) / 2) };
      case 'top':
        return { y: all.y };
      case 'bottom':
        return { y: roundPlace(all.y + all.height - box.height) };
      case 'middle':
        return { y: roundPlace(all.y + (all.height - box.height) / 2) };
    }
  };

  return boxes.map((box) => [box.key, place(box)]);
}

/** distributeBoxes returns the new places of boxes with the same distance between neighbours; the outer two stay. */
export function distributeBoxes(boxes: Box[], axis: Axis): Array<[string, Fields]> {
  const across = axis === 'across';
  const start = (box: Box) => (across ? box.x : box.y);
  const length = (box: Box) => (across ? box.width : box.height);
  const sorted = boxes.toSorted((a, b) => start(a) + length(a) / 2 - start(b) - length(b) / 2);
  const [first] = sorted;
  const last = sorted.at(-1);
  if (!first || !last || sorted.length < 3) {
    return [];
  }

  const room = start(last) + length(last) - start(first);
  const gap = (room - sorted.reduce((sum, box) => sum + length(box), 0)) / (sorted.length - 1);
  let at = start(first);
  return sorted.map((box) => {
    const here = roundPlace(at);
    at += length(box) + gap;
    return [box.key, across ? { x: here } : { y: here }];
  });
}

/** boxesInside returns the boxes whose middle lies in a frame. */
export function boxesInside(frame: Box, boxes: Box[]): Box[] {
  return boxes.filter((box) => {
    const x = box.x + box.width / 2;
    const y = box.y + box.height / 2;
    const within = x >= frame.x && x <= frame.x + frame.width && y >= frame.y && y <= frame.y + frame.height;

    return box.key !== frame.key && within && box.width * box.height < frame.width * frame.height;
  });
}

/** Guides are the lines to which a moving box snaps, and how far it must move to lie on them. */
export type Guides = {
  dx: number;
  dy: number;
  vertical?: { x: number; from: number; to: number };
  horizontal?: { y: number; from: number; to: number };
};

/** findGuides compares the edges and middle lines of a moving box with those of the others. */
export function findGuides(moving: Rectangle, others: Rectangle[], reach: number): Guides {
  const guides: Guides = { dx: 0, dy: 0 };
  let bestX = reach;
  let bestY = reach;

  for (const other of others) {
    for (const target of [other.x, other.x + other.width / 2, other.x + other.width]) {
      for (const own of [moving.x, moving.x + moving.width / 2, moving.x + moving.width]) {
        const distance = Math.abs(target - own);
        if (distance < bestX) {
          bestX = distance;
          guides.dx = target - own;
          guides.vertical = { x: target, ...span(moving.y, moving.height, other.y, other.height) };
        }
      }
    }
    for (const target of [other.y, other.y + other.height / 2, other.y + other.height]) {
      for (const own of [moving.y, moving.y + moving.height / 2, moving.y + moving.height]) {
        const distance = Math.abs(target - own);
        if (distance < bestY) {
          bestY = distance;
          guides.dy = target - own;
          guides.horizontal = { y: target, ...span(moving.x, moving.width, other.x, other.width) };
        }
      }
    }
  }

  return guides;
}

const span = (a: number, aLength: number, b: number, bLength: number) => ({
  from: Math.min(a, b),
  to: Math.max(a + aLength, b + bLength),
});

/** readingOrder sorts boxes as a page is read: rows from the top, each from the left. */
export function readingOrder(boxes: Box[]): Box[] {
  const rows: Array<{ bottom: number; boxes: Box[] }> = [];
  for (const box of boxes.toSorted((a, b) => a.y - b.y)) {
    const row = rows.at(-1);
    if (row && box.y + box.height / 2 < row.bottom) {
      row.boxes.push(box);
    } else {
      rows.push({ bottom: box.y + box.height, boxes: [box] });
    }
  }

  return rows.flatMap((row) => row.boxes.toSorted((a, b) => a.x - b.x));
}

/** placeInGrid returns places for boxes in rows around a point, in the order given. */
export function placeInGrid(sizes: Array<{ width: number; height: number }>, around: Point, gap = 24): Point[] {
  const columns = Math.ceil(Math.sqrt(sizes.length));
  const places: Point[] = [];
  let y = 0;
  let widest = 0;
  for (let start = 0; start < sizes.length; start += columns) {
    const row = sizes.slice(start, start + columns);
    let x = 0;
    for (const size of row) {
      places.push({ x, y });
      x += size.width + gap;
    }
    widest = Math.max(widest, x - gap);
    y += Math.max(...row.map((size) => size.height)) + gap;
  }

  const left = Math.round(around.x - widest / 2);
  const top = Math.round(around.y - (y - gap) / 2);
  return places.map((place) => ({ x: left + place.x, y: top + place.y }));
}

/** freePlaceBeside returns a place at the right of a box, below what already lies there. */
export function freePlaceBeside(box: Rectangle, size: { width: number; height: number }, others: Rectangle[]): Point {
  const gap = 24;
  const place = { x: box.x + box.width + gap, y: box.y };
  const covers = (other: Rectangle) =>
    other.x < place.x + size.width &&
    other.x + other.width > place.x &&
    other.y < place.y + size.height &&
    other.y + other.height > place.y;

  for (let tries = 0; tries < 50; tries++) {
    const there = others.find(covers);
    if (!there) {
      break;
    }
    place.y = there.y + there.height + gap;
  }
  return place;
}

/** stackChanges gives boxes the places in front of all others, or behind them, and keeps their order. */
export function stackChanges(
  chosen: Array<{ key: string; z: number }>,
  all: Array<{ key: string; z: number }>,
  to: 'front' | 'back',
): Array<[string, Fields]> {
  const keys = new Set(chosen.map((one) => one.key));
  const others = all.filter((one) => !keys.has(one.key)).map((one) => one.z);
  const sorted = chosen.toSorted((a, b) => a.z - b.z);
  const first = to === 'front' ? Math.max(0, ...others) + 1 : Math.min(0, ...others) - sorted.length;

  return sorted.map((one, index) => [one.key, { z: first + index }]);
}
