import { createContext, useContext } from 'react';
import type { Run } from '../data/runs';
import type { Tools } from './graph';
import type { FlowDraft } from './model';
import type { Check } from './useCheck';

/** FlowEditor is what the parts of the editor share. */
export type FlowEditor = {
  draft: FlowDraft;
  tools: Tools;
  check: Check;
  /** The newest run of the flow or of a part of it. */
  run: Run | undefined;
  /** The node whose panel is open. */
  selected: string | undefined;
  select: (id: string | undefined) => void;
  /** Replaces the draft. Changes with the same mark in short order are undone together. */
  change: (next: (draft: FlowDraft) => FlowDraft, mark?: string) => void;
  /** Gives a step another id, and keeps its place. */
  rename: (from: string, to: string) => void;
  runPart: (id: string) => void;
  addStep: () => void;
};

export const FlowEditorContext = createContext<FlowEditor | undefined>(undefined);

/** useFlowEditor returns what the parts of the editor share. */
export function useFlowEditor(): FlowEditor {
  const editor = useContext(FlowEditorContext);
  if (!editor) {
    throw new Error('useFlowEditor is called outside of the editor.');
  }
  return editor;
}
