import { createContext, useContext, useSyncExternalStore } from 'react';
import type { BoardSession } from './session';

/** BoardActions are what nodes and bars ask the board to do. */
export type BoardActions = {
  /** Starts to edit a text, or ends it. */
  edit: (key: string | undefined) => void;
  runAgain: (key: string) => void;
  takeAsInput: (key: string) => void;
  takeOff: (keys: string[]) => void;
};

export type BoardState = { session: BoardSession; actions: BoardActions; editing: string | undefined };

export const BoardContext = createContext<BoardState | undefined>(undefined);

/** useBoard returns the open board. */
export function useBoard(): BoardState {
  const state = useContext(BoardContext);
  if (!state) {
    throw new Error('useBoard is called outside of a board.');
  }
  return state;
}

/** useSelection returns the keys of the selected nodes. */
export function useSelection(): string[] {
  const { editor } = useBoard().session;

  return useSyncExternalStore(editor.subscribe, editor.getSelection);
}
