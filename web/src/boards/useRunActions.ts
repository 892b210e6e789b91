import { useCallback } from 'react';
import { messageOf } from '../data/ErrorFault';
import { loadPart } from '../ui/part';
import { useToast } from '../ui/Toast';
import { freePlaceBeside } from './arrange';
import type { BoardEditor } from './editor';
import { type Point, runSide } from './model';

/** useRunActions puts runs on the board: new ones where they were started, repeated ones beside their node. */
export function useRunActions(editor: BoardEditor, teamId: string | undefined) {
  const toast = useToast();

  const addRun = useCallback(
    (requestId: string, at: Point) => {
      const size = { width: runSide, height: runSide };
      editor.add([{ kind: 'GENERATION', ref: requestId, x: Math.round(at.x), y: Math.round(at.y), ...size }]);
    },
    [editor],
  );

  const placeBeside = useCallback(
    (key: string): Point => {
      const node = editor.node(key);
      const size = { width: runSide, height: runSide };

      return node ? freePlaceBeside(editor.boxOf(node), size, editor.boxes()) : { x: 0, y: 0 };
    },
    [editor],
  );

  const runAgain = useCallback(
    async (key: string) => {
      const node = editor.node(key);
      if (!node?.ref) {
        return;
      }
      try {
        const { repeatRun, repeatResult } = await loadPart(() => import('./runs'));
        const repeat = node.kind === 'GENERATION' ? repeatRun : repeatResult;
        addRun(await repeat(node.ref, teamId, crypto.randomUUID()), placeBeside(key));
      } catch (error) {
        toast({ text: messageOf(error), seconds: 12 });
      }
    },
    [editor, teamId, addRun, placeBeside, toast],
  );

  return { addRun, placeBeside, runAgain };
}
