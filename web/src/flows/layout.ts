import { needsOf, type Step } from './model';

/** Place is where a node stands on the canvas. */
export type Place = { x: number; y: number };

/** formId is the id of the node of the flow's form; no step has it, since ids of steps begin with a letter. */
export const formId = '#form';

const columnWidth = 320;
const gap = 36;

/** layersOf returns the layer of each step: one more than that of the last step that it needs. Circles end where they began. */
export function layersOf(steps: readonly Step[]): Map<string, number> {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const layers = new Map<string, number>();
  const visit = (id: string, above: ReadonlySet<string>): number => {
    const known = layers.get(id);
    const step = byId.get(id);
    if (known !== undefined || !step) {
      return known ?? -1;
    }
    const inside = new Set(above).add(id);
    const needed = needsOf(step).filter((one) => !inside.has(one));
    const layer = Math.max(-1, ...needed.map((one) => visit(one, inside))) + 1;
    layers.set(id, layer);
    return layer;
  };
  for (const { id } of steps) {
    visit(id, new Set());
  }

  return layers;
}

/** arrange places the form at the left and the steps in columns by their layers, in the order of the flow. */
export function arrange(steps: readonly Step[], heightOf: (id: string) => number): Map<string, Place> {
  const layers = layersOf(steps);
  const columns = new Map<number, string[]>();
  for (const { id } of steps) {
    const layer = layers.get(id) ?? 0;
    columns.set(layer, [...(columns.get(layer) ?? []), id]);
  }

  const places = new Map<string, Place>();
  const place = (ids: string[], x: number) => {
    const total = ids.reduce((sum, id) => sum + heightOf(id) + gap, -gap);
    let y = Math.round(-total / 2);
    for (const id of ids) {
      places.set(id, { x, y });
      y += heightOf(id) + gap;
    }
  };
  place([formId], 0);
  for (const [layer, ids] of columns) {
    place(ids, (layer + 1) * columnWidth);
  }

  return places;
}
