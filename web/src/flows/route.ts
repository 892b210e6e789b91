import type { Place } from './layout';

/** Box is what a node covers. */
type Box = Place & { width: number; height: number };

const margin = 18;
const spread = 7;
// Lines of one lane that lie beside each other; more would leave the gap between two nodes.
const tracks = 3;
// How far a line leaves and arrives level, however near its ends are.
const shortest = 40;

/** Lane is the level part of a line that goes around the nodes between its ends. */
type Lane = { from: number; to: number; y: number };

/**
 * findLane returns where a line passes the nodes between its ends, as near to both ends as possible; undefined if the
 * way is free or leads back. `track` keeps lines apart that take the same way.
 */
export function findLane(start: Place, end: Place, boxes: readonly Box[], track: number): Lane | undefined {
  const between = boxes.filter((box) => box.x > start.x && box.x + box.width < end.x);
  if (!between.some((box) => crosses(start, end, box))) {
    return undefined;
  }
  const isFree = (y: number) => between.every((box) => y <= box.y - margin / 2 || y >= box.y + box.height + margin / 2);
  const length = (y: number) => Math.abs(y - start.y) + Math.abs(y - end.y);
  const shift = margin + (track % tracks) * spread;
  const ys = [start.y, end.y, ...between.flatMap((box) => [box.y - shift, box.y + box.height + shift])];
  const y = ys.filter(isFree).sort((a, b) => length(a) - length(b))[0];
  if (y === undefined) {
    return undefined;
  }

  return {
    from: Math.min(...between.map((box) => box.x)),
    to: Math.max(...between.map((box) => box.x + box.width)),
    y,
  };
}

/** crosses reports whether the curve between two points meets a box between them. */
function crosses(start: Place, end: Place, box: Box): boolean {
  const ys = Array.from({ length: 9 }, (_, i) => heightAt(start, end, box.x + (box.width * i) / 8));

  return Math.min(...ys) < box.y + box.height && Math.max(...ys) > box.y;
}

/** heightAt returns the height of the curve at a place: it leaves and arrives level, like the curve that is drawn. */
function heightAt(start: Place, end: Place, x: number): number {
  const t = (x - start.x) / (end.x - start.x);

  return start.y + (end.y - start.y) * t * t * (3 - 2 * t);
}

/** pathOf returns the path of a line: one curve, or two with a lane between them. */
export function pathOf(start: Place, end: Place, lane: Lane | undefined): string {
  const curve = (from: Place, to: Place) => {
    const half = Math.max((to.x - from.x) / 2, shortest);
    return `C ${from.x + half} ${from.y} ${to.x - half} ${to.y} ${to.x} ${to.y}`;
  };
  const begin = `M ${start.x} ${start.y}`;
  if (!lane) {
    return `${begin} ${curve(start, end)}`;
  }
  const left = { x: lane.from, y: lane.y };
  const right = { x: lane.to, y: lane.y };

  return `${begin} ${curve(start, left)} L ${right.x} ${right.y} ${curve(right, end)}`;
}
