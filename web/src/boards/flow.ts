import type { Node, NodeProps } from '@xyflow/react';
import { type BoardNode, isSection, sizeOf } from './model';

export type FlowNode = Node<{ node: BoardNode }, 'media' | 'text' | 'section' | 'run'>;

// Sections lie behind everything else; a place in the order is at most a billion.
const sectionDepth = 1_000_000_000;
const lineHeight = 44;

/** toFlowNode returns a node as the canvas takes it. Its data stays the same object while only its place changes, so that it is not drawn again. */
export function toFlowNode(node: BoardNode, before: FlowNode | undefined): FlowNode {
  const { width, height } = sizeOf(node);
  const section = isSection(node);
  const data = before && looksSame(before.data.node, node) ? before.data : { node };
  // A text is measured once it is drawn; a node without any size would stay hidden until then and could take no focus.
  const measured = height === undefined ? { height: lineHeight, ...before?.measured, width } : { width, height };

  return {
    id: node.key,
    type: typeOf(node, section),
    position: { x: node.x, y: node.y },
    width,
    height,
    measured,
    zIndex: section ? node.z - sectionDepth : node.z,
    data,
    selected: before?.selected ?? false,
    dragging: before?.dragging,
    ...(section ? sectionParts : {}),
  };
}

// A section is taken at its heading; elsewhere the pointer reaches the board behind it.
const sectionParts = { dragHandle: '[data-section-head]', style: { pointerEvents: 'none' as const } };

function typeOf(node: BoardNode, section: boolean): FlowNode['type'] {
  if (section) {
    return 'section';
  }
  if (node.kind === 'TEXT') {
    return 'text';
  }
  return node.kind === 'GENERATION' ? 'run' : 'media';
}

const drawn: Array<keyof BoardNode> = ['id', 'kind', 'ref', 'text', 'width', 'height', 'missing', 'item', 'status'];

const looksSame = (a: BoardNode, b: BoardNode) => drawn.every((field) => a[field] === b[field]);

/** isDrawnSame keeps a node from being drawn again while it only moves. */
export function isDrawnSame(a: NodeProps<FlowNode>, b: NodeProps<FlowNode>): boolean {
  return a.data === b.data && a.selected === b.selected && a.id === b.id;
}

/** applyNodes puts the changed nodes of the board into the nodes of the canvas; what is being dragged there stays. */
export function applyNodes(
  nodes: FlowNode[],
  keys: Set<string>,
  get: (key: string) => BoardNode | undefined,
): FlowNode[] {
  const rest = new Set(keys);
  const next: FlowNode[] = [];
  for (const flow of nodes) {
    if (!rest.delete(flow.id)) {
      next.push(flow);
      continue;
    }
    const node = get(flow.id);
    if (node) {
      const made = toFlowNode(node, flow);
      next.push(flow.dragging ? { ...made, position: flow.position } : made);
    }
  }
  for (const key of rest) {
    const node = get(key);
    if (node) {
      next.push(toFlowNode(node, undefined));
    }
  }

  return next;
}
