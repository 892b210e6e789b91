// The words of the dialog that pins results and uploads to a board.

import { formatNumber } from '../ui/format';

export const text = {
  title: (count: number) => (count === 1 ? 'Pin to a board' : `Pin ${formatNumber(count)} items to a board`),
  newBoard: 'Name of a new board',
  createAndPin: 'Create and pin',
  chooseBoard: 'Boards',
  noBoards: 'There is no board yet. Name the first one.',
  boardNodes: (count: number) => (count === 1 ? '1 thing' : `${formatNumber(count)} things`),
  pinned: (count: number, board: string) =>
    count === 1 ? `Pinned to ${board}.` : `${formatNumber(count)} items pinned to ${board}.`,
  openBoard: 'Open',
};
