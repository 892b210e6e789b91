import type { Schemas } from '../api/client';

/** BoardItem is a result or an upload that shall lie on a board. */
export type BoardItem = Pick<Schemas['NodeItem'], 'width' | 'height'> & {
  kind: 'LIBRARY_REF' | 'UPLOAD_REF';
  id: string;
};

type Box = Pick<Schemas['Node'], 'x' | 'y' | 'width' | 'height' | 'item'>;

const side = 280;
const gap = 24;

/** sizeOnBoard returns the size of an item on a board: of one width, in its own shape. */
function sizeOnBoard(item: Pick<BoardItem, 'width' | 'height'>): { width: number; height: number } {
  const ratio = item.width && item.height ? item.height / item.width : 1;

  return { width: side, height: Math.round(side * ratio) };
}

/** heightOnBoard returns how high a node is shown; a node without a size has the shape of its item. */
function heightOnBoard(box: Box): number {
  return box.height || (box.item ? sizeOnBoard(box.item).height : 60);
}

/** placeBelow lays items out in rows below everything that is on a board. */
export function placeBelow(boxes: Box[], items: BoardItem[]): Schemas['NodeDraft'][] {
  const left = boxes.length > 0 ? Math.min(...boxes.map((box) => box.x)) : 0;
  const bottom = boxes.length > 0 ? Math.max(...boxes.map((box) => box.y + heightOnBoard(box))) + 2 * gap : 0;
  const columns = Math.min(items.length, Math.max(4, Math.ceil(Math.sqrt(items.length))));

  let top = bottom;
  let tallest = 0;
  return items.map((item, place) => {
    const column = place % columns;
    if (column === 0 && place > 0) {
      top += tallest + gap;
      tallest = 0;
    }
    const size = sizeOnBoard(item);
    tallest = Math.max(tallest, size.height);

    return {
      kind: item.kind,
      ref: item.id,
      x: left + column * (side + gap),
      y: top,
      width: size.width,
      height: size.height,
    };
  });
}
