import { BaseEdge, type EdgeProps, useNodes } from '@xyflow/react';
import { findLane, pathOf } from './route';

/** LineEdge draws a line of the graph around the nodes that stand between its ends. */
export function LineEdge({ id, source, target, data, interactionWidth, ...edge }: EdgeProps) {
  const nodes = useNodes();
  const boxes = nodes.flatMap(({ id: node, position, measured }) =>
    node === source || node === target
      ? []
      : [{ ...position, width: measured?.width ?? 0, height: measured?.height ?? 0 }],
  );
  const start = { x: edge.sourceX, y: edge.sourceY };
  const end = { x: edge.targetX, y: edge.targetY };
  const track = typeof data?.track === 'number' ? data.track : 0;
  const path = pathOf(start, end, findLane(start, end, boxes, track));

  return <BaseEdge id={id} path={path} interactionWidth={interactionWidth} />;
}
