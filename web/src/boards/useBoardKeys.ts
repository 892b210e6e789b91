import { useLayoutEffect } from 'react';
import { usePreferences } from '../data/preferences';
import { isTyping, type KeyMap, useKeys } from '../ui/keys';
import type { Tool } from './Canvas';
import type { BoardEditor } from './editor';
import type { Point } from './model';

type Commands = {
  editor: BoardEditor;
  setTool: (tool: Tool) => void;
  addText: () => void;
  pick: () => void;
  chooseFiles: () => void;
  compose: () => void;
  showAll: () => void;
  showSelection: () => void;
  open: () => void;
  takeOff: () => void;
  frame: () => void;
  upload: (files: File[], at: Point) => void;
  /** The place of the pointer on the board, or the middle of the view. */
  place: () => Point;
};

/** useBoardKeys listens to the keys of the board, and to copy, cut and paste. */
export function useBoardKeys(commands: Commands, enabled: boolean): void {
  const { letterKeys } = usePreferences();
  const { editor } = commands;

  const keys: KeyMap = {
    v: () => commands.setTool('select'),
    h: () => commands.setTool('hand'),
    t: commands.addText,
    l: commands.pick,
    u: commands.chooseFiles,
    c: commands.compose,
    '1': commands.showAll,
    '2': commands.showSelection,
    Enter: (event) => activate(event, commands.open),
    Delete: commands.takeOff,
    Backspace: commands.takeOff,
    ArrowLeft: () => editor.nudge(-1, 0),
    ArrowRight: () => editor.nudge(1, 0),
    ArrowUp: () => editor.nudge(0, -1),
    ArrowDown: () => editor.nudge(0, 1),
    'Shift+ArrowLeft': () => editor.nudge(-10, 0),
    'Shift+ArrowRight': () => editor.nudge(10, 0),
    'Shift+ArrowUp': () => editor.nudge(0, -10),
    'Shift+ArrowDown': () => editor.nudge(0, 10),
    'Ctrl+a': () => editor.select(editor.sync.all().map((node) => node.key)),
    'Ctrl+d': () => editor.duplicate(),
    'Ctrl+g': commands.frame,
    'Ctrl+z': () => editor.undo(),
    'Ctrl+Shift+z': () => editor.redo(),
    'Ctrl+y': () => editor.redo(),
    '[': () => editor.stack('back'),
    ']': () => editor.stack('front'),
    'Alt+a': () => editor.align('left'),
    'Alt+d': () => editor.align('right'),
    'Alt+w': () => editor.align('top'),
    'Alt+s': () => editor.align('bottom'),
    Escape: () => editor.select([]),
  };
  useKeys(outsideInputs(keys), { enabled, letters: letterKeys });
  useClipboard(commands, enabled);
}

/** outsideInputs leaves Ctrl A, Z and the like to inputs, where they mean text. */
function outsideInputs(keys: KeyMap): KeyMap {
  return Object.fromEntries(
    Object.entries(keys).map(([name, act]) => [
      name,
      name.startsWith('Ctrl+') ? (event: KeyboardEvent) => !isTyping(event.target) && act(event) : act,
    ]),
  );
}

// Enter presses a button that has the focus; on the board it opens the selected node.
function activate(event: KeyboardEvent, open: () => void): void {
  const target = event.target as HTMLElement;
  if (target === document.body || target.closest('[data-board-focus]')) {
    open();
  } else {
    target.click();
  }
}

function useClipboard({ editor, upload, place, takeOff }: Commands, enabled: boolean): void {
  useLayoutEffect(() => {
    if (!enabled) {
      return;
    }

    const copy = (event: ClipboardEvent) => {
      const words = editor.copyText();
      if (isTyping(event.target) || !words || getSelection()?.isCollapsed === false) {
        return;
      }
      event.preventDefault();
      event.clipboardData?.setData('text/plain', words);
      if (event.type === 'cut') {
        takeOff();
      }
    };
    const paste = (event: ClipboardEvent) => {
      if (isTyping(event.target) || !event.clipboardData) {
        return;
      }
      event.preventDefault();
      const files = [...event.clipboardData.files];
      if (files.length > 0) {
        upload(files, place());
      } else {
        editor.paste(event.clipboardData.getData('text/plain'), place());
      }
    };

    document.addEventListener('copy', copy);
    document.addEventListener('cut', copy);
    document.addEventListener('paste', paste);
    return () => {
      document.removeEventListener('copy', copy);
      document.removeEventListener('cut', copy);
      document.removeEventListener('paste', paste);
    };
  });
}
