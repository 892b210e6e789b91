import type { Schemas } from '../api/client';

export type ServerNode = Schemas['Node'];
export type NodeItem = Schemas['NodeItem'];
export type BoardSummary = Schemas['BoardSummary'];
export type Viewer = Schemas['BoardViewer'];

/** Fields are the parts of a node that people change; the later change wins, for each field by itself. */
export type Fields = { text?: string; x?: number; y?: number; width?: number; height?: number; z?: number };

/** Draft is a node to add. Its item is shown until the service answers with its own. */
export type Draft = {
  kind: ServerNode['kind'];
  ref?: string;
  text?: string;
  x: number;
  y: number;
  width?: number;
  height?: number;
  z?: number;
  item?: NodeItem | null;
};

/**
 * BoardNode is a node as it is shown. Its key stays the same while the page is open: a node that was added here, or
 * deleted and brought back, gets its id from the service later, and keeps its key.
 */
export type BoardNode = {
  key: string;
  id: string | undefined;
  kind: ServerNode['kind'];
  ref: string | null;
  text: string;
  x: number;
  y: number;
  width: number;
  height: number;
  z: number;
  /** The person who changed it last; null if nobody knows. */
  uid: string | null;
  revision: number;
  missing: boolean;
  item: NodeItem | null;
  status: ServerNode['status'];
};

export type Point = { x: number; y: number };
export type Box = { key: string; x: number; y: number; width: number; height: number };

/** Sizes of nodes that say none themselves. */
export const longestSide = 320;
export const textWidth = 240;
export const runSide = 240;
const soundSize = { width: 300, height: 108 };

/** showNode turns a node of the service into one that is shown. */
export function showNode(key: string, node: ServerNode): BoardNode {
  return {
    key,
    id: node.id,
    kind: node.kind,
    ref: node.ref,
    text: node.text,
    x: node.x,
    y: node.y,
    width: node.width,
    height: node.height,
    z: node.z,
    uid: node.uid ?? null,
    revision: node.revision,
    missing: node.missing,
    item: node.item,
    status: node.status,
  };
}

/** showDraft turns a node that the service does not know yet into one that is shown. */
export function showDraft(key: string, draft: Draft): BoardNode {
  return {
    key,
    id: undefined,
    kind: draft.kind,
    ref: draft.ref ?? null,
    text: draft.text ?? '',
    x: draft.x,
    y: draft.y,
    width: draft.width ?? 0,
    height: draft.height ?? 0,
    z: draft.z ?? 999_999,
    uid: null,
    revision: 0,
    missing: false,
    item: draft.item ?? null,
    status: draft.kind === 'GENERATION' ? 'pending' : null,
  };
}

/** draftOf returns what is needed to add a node once more. */
export function draftOf(node: BoardNode): Draft {
  return {
    kind: node.kind,
    ref: node.ref ?? undefined,
    text: node.text,
    x: node.x,
    y: node.y,
    width: node.width,
    height: node.height,
    z: node.z,
    item: node.item,
  };
}

/** isHeading reports whether a node is a text that is set as a heading. */
export const isHeading = (node: BoardNode) => node.kind === 'TEXT' && node.text.startsWith('# ');

/** isSection reports whether a node is a frame with a heading; what lies in it moves with it. */
export const isSection = (node: BoardNode) => isHeading(node) && node.width > 0 && node.height > 0;

/** plainText returns the text of a node without the mark of a heading. */
export const plainText = (node: BoardNode) => node.text.replace(/^# /, '');

/** sizeOf returns the size at which a node is shown; a text without a height has the height of its lines, which only the page knows. */
export function sizeOf(node: BoardNode): { width: number; height: number | undefined } {
  if (node.kind === 'TEXT') {
    return {
      width: node.width || (isHeading(node) ? longestSide : textWidth),
      height: node.height || undefined,
    };
  }

  const natural = naturalSize(node);
  if (node.width > 0 && node.height > 0) {
    return { width: node.width, height: node.height };
  }
  if (node.width > 0) {
    return { width: node.width, height: (node.width * natural.height) / natural.width };
  }
  if (node.height > 0) {
    return { width: (node.height * natural.width) / natural.height, height: node.height };
  }
  return natural;
}

function naturalSize(node: BoardNode): { width: number; height: number } {
  const item = node.item;
  if (item?.type === 'AUDIO') {
    return soundSize;
  }
  if (item?.width && item.height) {
    return shapeSize(item.width, item.height);
  }
  return { width: runSide, height: runSide };
}

/** shapeSize scales a shape so that its longest side is as long as that of a new picture. */
export function shapeSize(width: number, height: number): { width: number; height: number } {
  const scale = longestSide / Math.max(width, height);

  return { width: Math.round(width * scale), height: Math.round(height * scale) };
}

/** isPaintable reports whether the canvas can draw a node. Runs, sounds and cards without a file are few, and stay elements. */
export const isPaintable = ({ kind, item }: BoardNode) =>
  kind === 'TEXT' || (kind !== 'GENERATION' && item !== null && item.type !== 'AUDIO');

/** keepsRatio reports whether a node must keep its shape when it is resized. */
export const keepsRatio = (node: BoardNode) => node.kind !== 'TEXT' && node.item?.type !== 'AUDIO';

const shown: Array<keyof BoardNode> = [
  'id',
  'ref',
  'text',
  'x',
  'y',
  'width',
  'height',
  'z',
  'uid',
  'missing',
  'item',
  'status',
];

/** isSame reports whether a node is shown as it was before. */
export function isSame(before: BoardNode | undefined, node: BoardNode): boolean {
  return before !== undefined && shown.every((field) => before[field] === node[field]);
}
