import {
  experimental_useOnNodesChangeMiddleware,
  type NodeChange,
  type NodePositionChange,
  useStoreApi,
} from '@xyflow/react';
import { useCallback, useRef } from 'react';
import { boundsOf, boxesInside, findGuides, type Guides } from './arrange';
import { useBoard } from './context';
import type { FlowNode } from './flow';
import { type Box, isSection, type Point } from './model';

// How near an edge must be, in pixels of the screen, to snap; and how many nodes are compared.
const reach = 6;
const compared = 200;

type Drag = {
  keys: string[];
  /** What lies in a dragged section, with its distance from the section. */
  members: Map<string, { section: string; dx: number; dy: number }>;
  sizes: Map<string, { width: number; height: number }>;
  others: Box[];
};

/**
 * useMovement moves nodes with the pointer: they snap to the lines of others, sections take along what lies in them,
 * and the places are sent while the drag goes on.
 */
export function useMovement(showGuides: (guides: Guides | undefined) => void) {
  const { editor } = useBoard().session;
  const store = useStoreApi<FlowNode>();
  const drag = useRef<Drag>(undefined);

  const start = useCallback(
    (nodes: FlowNode[]) => {
      const dragged = nodes.map((node) => node.id);
      const boxes = editor.boxes();
      const byKey = new Map(boxes.map((box) => [box.key, box]));
      const members: Drag['members'] = new Map();
      for (const key of dragged) {
        const node = editor.node(key);
        const frame = byKey.get(key);
        if (!node || !frame || !isSection(node)) {
          continue;
        }
        for (const box of boxesInside(frame, boxes)) {
          if (!dragged.includes(box.key)) {
            members.set(box.key, { section: key, dx: box.x - frame.x, dy: box.y - frame.y });
          }
        }
      }
      const keys = [...dragged, ...members.keys()];
      const moving = new Set(keys);
      const { transform, width, height } = store.getState();
      const view = visiblePart(transform, width, height);
      const others = boxes.filter((box) => !moving.has(box.key) && overlaps(box, view)).slice(0, compared);

      drag.current = { keys, members, sizes: byKey, others };
      editor.startHold(keys, ['x', 'y']);
    },
    [editor, store],
  );

  const middleware = useCallback(
    (changes: NodeChange<FlowNode>[]) => {
      const current = drag.current;
      const moves = changes.filter(isMove);
      if (!current || moves.length === 0) {
        return changes;
      }

      const rectangles = moves.map((move) => ({
        width: 0,
        height: 0,
        ...current.sizes.get(move.id),
        ...move.position,
      }));
      const guides = findGuides(boundsOf(rectangles), current.others, reach / store.getState().transform[2]);
      showGuides(guides);
      const places = new Map<string, Point>();
      for (const move of moves) {
        const place = { x: Math.round(move.position.x + guides.dx), y: Math.round(move.position.y + guides.dy) };
        move.position = place;
        places.set(move.id, place);
      }
      for (const [id, { section, dx, dy }] of current.members) {
        const place = places.get(section);
        if (place) {
          changes.push({
            id,
            type: 'position',
            position: { x: place.x + dx, y: place.y + dy },
            dragging: moves[0]?.dragging,
          });
        }
      }
      return changes;
    },
    [store, showGuides],
  );
  experimental_useOnNodesChangeMiddleware(middleware as (changes: NodeChange[]) => NodeChange[]);

  const move = useCallback(() => {
    const { nodeLookup } = store.getState();
    const keys = drag.current?.keys ?? [];
    editor.hold(
      keys.flatMap((key) => {
        const place = nodeLookup.get(key)?.position;
        return place ? [[key, { x: place.x, y: place.y }] as [string, Point]] : [];
      }),
    );
  }, [editor, store]);

  const stop = useCallback(() => {
    if (drag.current) {
      move();
      drag.current = undefined;
      showGuides(undefined);
      editor.endHold();
    }
  }, [editor, move, showGuides]);

  return { start, move, stop };
}

type Move = NodePositionChange & { position: Point };

const isMove = (change: NodeChange<FlowNode>): change is Move =>
  change.type === 'position' && change.position !== undefined && change.dragging !== undefined;

function visiblePart([x, y, zoom]: [number, number, number], width: number, height: number) {
  return { x: -x / zoom, y: -y / zoom, width: width / zoom, height: height / zoom };
}

const overlaps = (a: Omit<Box, 'key'>, b: Omit<Box, 'key'>) =>
  a.x < b.x + b.width && a.x + a.width > b.x && a.y < b.y + b.height && a.y + a.height > b.y;
