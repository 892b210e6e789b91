import type { Draft, Fields } from './model';

/** Step is one change of a node that can be taken back. */
export type Step =
  | { kind: 'set'; key: string; before: Fields; after: Fields }
  | { kind: 'add'; key: string; draft: Draft }
  | { kind: 'remove'; key: string; draft: Draft };

/** Target is what steps change: the board. */
export type Target = {
  update: (changes: Array<[key: string, fields: Fields]>) => void;
  restore: (key: string, draft: Draft) => void;
  remove: (keys: string[]) => void;
};

const longest = 200;
const mergeTime = 800;

/**
 * History takes back what this person did, and does it again. It is local: it sets the fields that it changed back and
 * leaves what others did to other fields. Nodes keep their keys when they come back, so older steps still find them.
 */
export class History {
  private done: Array<{ steps: Step[]; at: number; mark?: string }> = [];
  private undone: Step[][] = [];

  get canUndo(): boolean {
    return this.done.length > 0;
  }

  get canRedo(): boolean {
    return this.undone.length > 0;
  }

  /** record keeps steps that were made together. Steps with the same mark in short order, such as arrow keys, are one. */
  record(steps: Step[], mark?: string, now = Date.now()): void {
    if (steps.length === 0) {
      return;
    }
    this.undone = [];
    const last = this.done.at(-1);
    if (mark && last?.mark === mark && now - last.at < mergeTime) {
      last.steps = mergeSteps(last.steps, steps);
      last.at = now;
      return;
    }
    this.done.push({ steps, at: now, mark });
    if (this.done.length > longest) {
      this.done.shift();
    }
  }

  /** undo takes the last steps back, and returns the keys of their nodes. */
  undo(target: Target): string[] {
    const entry = this.done.pop();
    if (!entry) {
      return [];
    }
    this.undone.push(entry.steps);
    return apply(entry.steps.toReversed().map(invert), target);
  }

  /** redo makes the steps again that were taken back last. */
  redo(target: Target): string[] {
    const steps = this.undone.pop();
    if (!steps) {
      return [];
    }
    this.done.push({ steps, at: 0 });
    return apply(steps, target);
  }
}

function invert(step: Step): Step {
  switch (step.kind) {
    case 'set':
      return { ...step, before: step.after, after: step.before };
    case 'add':
      return { ...step, kind: 'remove' };
    case 'remove':
      return { ...step, kind: 'add' };
  }
}

function apply(steps: Step[], target: Target): string[] {
  for (const step of steps) {
    if (step.kind === 'add') {
      target.restore(step.key, step.draft);
    }
  }
  target.update(steps.flatMap((step) => (step.kind === 'set' ? [[step.key, step.after] as [string, Fields]] : [])));
  target.remove(steps.filter((step) => step.kind === 'remove').map((step) => step.key));

  return steps.filter((step) => step.kind !== 'remove').map((step) => step.key);
}

function mergeSteps(first: Step[], second: Step[]): Step[] {
  const merged = [...first];
  for (const step of second) {
    const at = merged.findIndex((one) => one.kind === 'set' && one.key === step.key);
    const known = merged[at];
    if (known?.kind === 'set' && step.kind === 'set') {
      merged[at] = {
        ...known,
        before: { ...step.before, ...known.before },
        after: { ...known.after, ...step.after },
      };
    } else {
      merged.push(step);
    }
  }
  return merged;
}
