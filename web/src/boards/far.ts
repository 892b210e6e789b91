import { useStore, type Viewport } from '@xyflow/react';
import { createContext, useContext, useEffect, useState } from 'react';
import { type BoardNode, isPaintable } from './model';

// Below the first zoom a board of many nodes is drawn on one canvas; from the second on it consists of elements again.
const farZoom = 0.3;
const nearZoom = 0.33;
const leaveTime = 250;

/**
 * FarStage says who draws the nodes. While the view comes from near, elements do until the canvas has its pictures;
 * while it leaves, the canvas covers the elements until those have theirs.
 */
export type FarStage = 'near' | 'entering' | 'far' | 'leaving';

const FarContext = createContext<FarStage>('near');

export const FarProvider = FarContext.Provider;

/** usePainted reports whether the canvas draws a node, so that its element needs to show nothing. */
export function usePainted(node: BoardNode): boolean {
  const stage = useContext(FarContext);
  // What comes into view from afar showed nothing before that could be lost.
  const [late] = useState(stage === 'entering');

  return (stage === 'far' || (late && stage === 'entering')) && isPaintable(node);
}

/** useFarStage follows the zoom of a board, and returns a function for the canvas to say that it has its pictures. */
export function useFarStage(many: boolean, first: Viewport | undefined): [FarStage, () => void] {
  const placed = useStore((state) => state.panZoom !== null && !state.fitViewQueued);
  const below = useStore((state) => state.transform[2] < farZoom);
  const above = useStore((state) => state.transform[2] >= nearZoom);
  // A board that is opened without a place to look at is shown as a whole: from afar, if it has many nodes.
  const [stage, setStage] = useState<FarStage>(many && (first?.zoom ?? 0) < farZoom ? 'entering' : 'near');

  useEffect(() => {
    if (!placed) {
      return;
    }
    if (many && below) {
      setStage((before) => (before === 'near' ? 'entering' : before === 'leaving' ? 'far' : before));
    } else if (!many || above) {
      setStage((before) => (before === 'near' || before === 'entering' ? 'near' : 'leaving'));
    }
  }, [placed, many, below, above]);

  useEffect(() => {
    if (stage === 'leaving') {
      const timer = setTimeout(() => setStage('near'), leaveTime);
      return () => clearTimeout(timer);
    }
  }, [stage]);

  return [stage, () => setStage((before) => (before === 'entering' ? 'far' : before))];
}
