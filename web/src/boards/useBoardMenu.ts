import { useState } from 'react';
import { useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { text } from '../text/boards';
import type { MenuItem } from '../ui/Menu';
import { loadPart } from '../ui/part';
import { useToast } from '../ui/Toast';
import { useDeleteBoard } from './lists';
import type { BoardSummary } from './model';
import type { BoardSession } from './session';

type Commands = { rename: () => void; frame: () => void };

/** useBoardMenu lists what can be done with the whole board. */
export function useBoardMenu(
  session: BoardSession,
  board: BoardSummary,
  { rename, frame }: Commands,
): { items: MenuItem[] } {
  const { editor, sync } = session;
  const { linkTo } = useAccount();
  const [, navigate] = useLocation();
  const toast = useToast();
  const deleteBoard = useDeleteBoard();
  const [busy, setBusy] = useState(false);

  const exportPicture = async () => {
    const chosen = editor.selectedNodes();
    const nodes = chosen.length > 1 ? chosen : sync.all();
    if (nodes.length === 0) {
      toast({ text: text.exportEmpty });
      return;
    }
    setBusy(true);
    toast({ text: text.exporting });
    try {
      const { drawBoard, saveFile } = await loadPart(() => import('./exportPicture'));
      saveFile(await drawBoard(editor, nodes), `${board.name.replace(/[\\/:*?"<>|]+/g, ' ').trim() || 'board'}.png`);
      toast({ text: text.exported });
    } catch {
      toast({ text: text.exportFailed });
    }
    setBusy(false);
  };

  const items: MenuItem[] = [
    { label: text.undo, icon: 'undo', note: 'Ctrl Z', onSelect: () => editor.undo() },
    { label: text.redo, icon: 'redo', note: 'Ctrl Shift Z', onSelect: () => editor.redo() },
    'line',
    {
      label: text.selectAll,
      icon: 'cursor',
      note: 'Ctrl A',
      onSelect: () => editor.select(sync.all().map((node) => node.key)),
    },
    { label: text.frame, icon: 'board', note: 'Ctrl G', onSelect: frame },
    'line',
    { label: text.exportPicture, icon: 'download', disabled: busy, onSelect: () => void exportPicture() },
    {
      label: text.copyLink,
      icon: 'link',
      onSelect: () => void navigator.clipboard.writeText(location.href).then(() => toast({ text: text.linkCopied })),
    },
    { label: text.rename, icon: 'text', onSelect: rename },
    'line',
    {
      label: text.remove,
      icon: 'trash',
      danger: true,
      onSelect: () => void deleteBoard(board).then((done) => done && navigate(linkTo('/boards'))),
    },
  ];
  return { items };
}
