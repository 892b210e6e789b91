// The timeline at the side of the grid: months and years at the part of the list where they begin.

/** Point is the time of one item of the list. */
export type Point = { index: number; time: number };

export type TimeLabel = {
  /** Where the label stands, from 0 at the top to 1 at the foot. */
  part: number;
  text: string;
  year: boolean;
};

/** timeAt returns the time of an item, between the two known times around it. */
export function timeAt(points: Point[], index: number): number | undefined {
  let before: Point | undefined;
  for (const point of points) {
    if (point.index > index) {
      if (!before) {
        return point.time;
      }
      const part = (index - before.index) / (point.index - before.index);
      return before.time + (point.time - before.time) * part;
    }
    before = point;
  }

  return before?.time;
}

const monthNames = new Intl.DateTimeFormat(undefined, { month: 'short' });

function startOfMonth(time: number): Date {
  const day = new Date(time);

  return new Date(day.getFullYear(), day.getMonth(), 1);
}

/** labelMonths returns the months that the list covers; a month of another year than the one before is shown as that year. */
export function labelMonths(points: Point[], total: number): TimeLabel[] {
  const first = points[0];
  if (!first || total === 0) {
    return [];
  }

  const nameOf = (month: Date, previous?: Date): Pick<TimeLabel, 'text' | 'year'> => {
    const year = previous !== undefined && previous.getFullYear() !== month.getFullYear();
    return { text: year ? String(month.getFullYear()) : monthNames.format(month), year };
  };

  let shown = startOfMonth(first.time);
  const labels: TimeLabel[] = [{ part: 0, ...nameOf(shown) }];
  for (const [at, point] of points.entries()) {
    const before = points[at - 1];
    const month = startOfMonth(point.time);
    if (!before || month.getTime() === shown.getTime()) {
      continue;
    }

    // The month begins somewhere between the two points: at the boundary of time that lies between them.
    const boundary = point.time < before.time ? startOfMonth(before.time).getTime() : month.getTime();
    const span = point.time - before.time;
    const part = span === 0 ? 0 : (boundary - before.time) / span;
    const index = before.index + (point.index - before.index) * Math.min(1, Math.max(0, part));
    labels.push({ part: index / total, ...nameOf(month, shown) });
    shown = month;
  }

  return labels;
}

/** thinOut leaves out labels that would stand too close together; years stay before months. */
export function thinOut(labels: TimeLabel[], height: number, distance: number): TimeLabel[] {
  const kept: TimeLabel[] = [];
  const near = (one: TimeLabel, other: TimeLabel) => Math.abs(one.part - other.part) * height < distance;
  for (const label of [...labels.filter((one) => one.year), ...labels.filter((one) => !one.year)]) {
    if (!kept.some((one) => near(one, label))) {
      kept.push(label);
    }
  }

  return kept.sort((one, other) => one.part - other.part);
}

/** partOf returns how far the list is scrolled, from 0 to 1. */
export function partOf(scrollTop: number, scrollHeight: number, height: number): number {
  const way = scrollHeight - height;

  return way <= 0 ? 0 : Math.min(1, Math.max(0, scrollTop / way));
}
