import { type Axis, alignBoxes, boundsOf, boxesInside, distributeBoxes, type Edge, stackChanges } from './arrange';
import { History, type Step } from './history';
import { type BoardNode, type Box, type Draft, draftOf, type Fields, isSection, type Point, sizeOf } from './model';
import type { BoardSync, NodeFields } from './sync';

const sectionMargin = 26;
const sectionHead = 70;

/** clipboardMark begins the text of copied nodes, so that other text is pasted as text. */
const clipboardMark = 'atelier-nodes:';

/** BoardEditor makes the changes that a person asks for, and can take them back. */
export class BoardEditor {
  private readonly history = new History();
  private readonly listeners = new Set<() => void>();
  private heldBefore = new Map<string, Fields>();
  private chosen: string[] = [];
  /** The sizes of nodes on the page, which are known for texts only there. */
  measure: (key: string) => { width?: number; height?: number } | undefined = () => undefined;
  /** Selects nodes on the page. */
  select: (keys: string[]) => void = () => {};

  constructor(readonly sync: BoardSync) {}

  /** subscribe calls the listener when the selection, or what can be undone, has changed. */
  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  private tell(): void {
    for (const listener of this.listeners) {
      listener();
    }
  }

  getSelection = () => this.chosen;
  canUndo = () => this.history.canUndo;
  canRedo = () => this.history.canRedo;

  /** noteSelection takes the keys that are selected on the page. */
  noteSelection(keys: string[]): void {
    if (keys.length !== this.chosen.length || keys.some((key, at) => key !== this.chosen[at])) {
      this.chosen = keys;
      this.tell();
    }
  }

  node(key: string): BoardNode | undefined {
    return this.sync.get(key);
  }

  /** selectedNodes returns the selected nodes that are still there. */
  selectedNodes(): BoardNode[] {
    return this.chosen.flatMap((key) => this.sync.get(key) ?? []);
  }

  boxOf(node: BoardNode): Box {
    const size = sizeOf(node);
    const measured = this.measure(node.key);

    return {
      key: node.key,
      x: node.x,
      y: node.y,
      width: size.width,
      height: size.height ?? measured?.height ?? 40,
    };
  }

  boxes(nodes: BoardNode[] = this.sync.all()): Box[] {
    return nodes.map((node) => this.boxOf(node));
  }

  /** withMembers adds to nodes what lies in the sections among them. */
  withMembers(keys: string[]): string[] {
    const sections = keys.flatMap((key) => this.sync.get(key) ?? []).filter(isSection);
    if (sections.length === 0) {
      return keys;
    }
    const boxes = this.boxes();
    const members = sections.flatMap((section) => boxesInside(this.boxOf(section), boxes).map((box) => box.key));

    return [...new Set([...keys, ...members])];
  }

  private record(steps: Step[], mark?: string): void {
    this.history.record(steps, mark);
    this.tell();
  }

  /** change sets fields of nodes. Changes with the same mark in short order are undone together. */
  change(changes: NodeFields, mark?: string): void {
    const steps = changes.flatMap(([key, after]): Step[] => {
      const node = this.sync.get(key);
      return node ? [{ kind: 'set', key, before: pick(node, after), after }] : [];
    });
    this.sync.update(changes);
    this.record(steps, mark);
  }

  /** startHold begins a change that goes on for a while, such as a drag. */
  startHold(keys: string[], fields: Array<keyof Fields>): void {
    const names = Object.fromEntries(fields.map((field) => [field, undefined])) as Fields;
    this.heldBefore = new Map(
      keys.flatMap((key) => {
        const node = this.sync.get(key);
        return node ? [[key, pick(node, names)] as [string, Fields]] : [];
      }),
    );
  }

  /** hold shows and sends the change as it is now. */
  hold(changes: NodeFields): void {
    this.sync.hold(changes);
  }

  /** endHold ends the change; it can be undone as one. */
  endHold(): void {
    this.sync.release();
    const steps = [...this.heldBefore].flatMap(([key, before]): Step[] => {
      const node = this.sync.get(key);
      const after = node && pick(node, before);
      return after && differs(before, after) ? [{ kind: 'set', key, before, after }] : [];
    });
    this.heldBefore.clear();
    this.record(steps);
  }

  /** add puts new nodes on the board and selects them. */
  add(drafts: Draft[]): string[] {
    const keys = drafts.map((draft) => this.sync.create(draft));
    this.record(drafts.map((draft, at) => ({ kind: 'add', key: keys[at] ?? '', draft })));
    this.select(keys);

    return keys;
  }

  /** remove takes nodes off the board. */
  remove(keys: string[]): number {
    const nodes = keys.flatMap((key) => this.sync.get(key) ?? []);
    this.sync.remove(nodes.map((node) => node.key));
    this.record(nodes.map((node) => ({ kind: 'remove', key: node.key, draft: draftOf(node) })));

    return nodes.length;
  }

  undo(): void {
    const keys = this.history.undo(this.sync);
    this.select(keys.filter((key) => this.sync.get(key)));
    this.tell();
  }

  redo(): void {
    const keys = this.history.redo(this.sync);
    this.select(keys.filter((key) => this.sync.get(key)));
    this.tell();
  }

  /** nudge moves the selection, and what lies in its sections. */
  nudge(dx: number, dy: number): void {
    const nodes = this.withMembers(this.chosen).flatMap((key) => this.sync.get(key) ?? []);
    this.change(
      nodes.map((node) => [node.key, { x: node.x + dx, y: node.y + dy }]),
      'nudge',
    );
  }

  align(edge: Edge): void {
    const nodes = this.selectedNodes();
    if (nodes.length > 1) {
      this.change(alignBoxes(this.boxes(nodes), edge));
    }
  }

  distribute(axis: Axis): void {
    this.change(distributeBoxes(this.boxes(this.selectedNodes()), axis));
  }

  stack(to: 'front' | 'back'): void {
    const nodes = this.selectedNodes();
    if (nodes.length > 0) {
      this.change(stackChanges(nodes, this.sync.all(), to));
    }
  }

  /** frame puts a section around the selection; what lies in it then moves with it. */
  frame(title: string): string | undefined {
    const nodes = this.selectedNodes();
    if (nodes.length === 0) {
      return undefined;
    }
    const around = boundsOf(this.boxes(nodes));
    const [key] = this.add([
      {
        kind: 'TEXT',
        text: `# ${title}`,
        x: around.x - sectionMargin,
        y: around.y - sectionHead,
        width: around.width + 2 * sectionMargin,
        height: around.height + sectionHead + sectionMargin,
      },
    ]);
    return key;
  }

  duplicate(): void {
    this.add(this.selectedNodes().map((node) => shifted(draftOf(node), 32, 32)));
  }

  /** copyText returns the selection as a text for the clipboard. */
  copyText(): string {
    const drafts = this.selectedNodes().map((node) => draftOf(node));

    return drafts.length > 0 ? clipboardMark + JSON.stringify(drafts) : '';
  }

  /** paste adds copied nodes around a point, or a text that was copied elsewhere. */
  paste(text: string, at: Point): void {
    const drafts = readDrafts(text);
    if (drafts.length > 0) {
      const around = boundsOf(drafts.map((draft) => ({ width: 0, height: 0, ...draft })));
      const dx = at.x - around.x - around.width / 2;
      const dy = at.y - around.y - around.height / 2;
      this.add(drafts.map((draft) => shifted(draft, dx, dy)));
    } else if (text.trim()) {
      this.add([{ kind: 'TEXT', text: text.trim().slice(0, 10_000), x: Math.round(at.x), y: Math.round(at.y) }]);
    }
  }
}

function pick(node: BoardNode, fields: Fields): Fields {
  return Object.fromEntries(Object.keys(fields).map((field) => [field, node[field as keyof Fields]]));
}

const differs = (a: Fields, b: Fields) =>
  Object.keys(a).some((field) => a[field as keyof Fields] !== b[field as keyof Fields]);

const shifted = (draft: Draft, dx: number, dy: number): Draft => ({
  ...draft,
  z: undefined,
  x: Math.round(draft.x + dx),
  y: Math.round(draft.y + dy),
});

/** readDrafts reads copied nodes from the clipboard's text; anything else has none. */
export function readDrafts(text: string): Draft[] {
  if (!text.startsWith(clipboardMark)) {
    return [];
  }
  try {
    const drafts = JSON.parse(text.slice(clipboardMark.length)) as Draft[];

    return drafts.filter((draft) => Number.isFinite(draft.x) && Number.isFinite(draft.y)).slice(0, 1000);
  } catch {
    return [];
  }
}
