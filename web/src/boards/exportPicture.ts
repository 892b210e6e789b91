import { boundsOf } from './arrange';
import type { BoardEditor } from './editor';
import { type BoardNode, isSection } from './model';
import { drawCovering, drawNode, nodeRadius, readPalette } from './paint';

// Bounds of the picture: browsers refuse larger canvases, and a file of this size is still easy to send.
const longest = 8192;
const mostPixels = 40_000_000;
const margin = 48;
const atOnce = 6;

/** pictureScale returns how many pixels a unit of the board gets, so that the picture stays within its bounds. */
export function pictureScale(width: number, height: number): number {
  return Math.min(2, longest / width, longest / height, Math.sqrt(mostPixels / (width * height)));
}

/** drawBoard draws nodes of a board as a PNG. Pictures that cannot be read are drawn in their average colour. */
export async function drawBoard(editor: BoardEditor, nodes: BoardNode[]): Promise<Blob> {
  const boxes = new Map(editor.boxes(nodes).map((box) => [box.key, box]));
  const around = boundsOf([...boxes.values()]);
  const width = around.width + 2 * margin;
  const height = around.height + 2 * margin;
  const scale = pictureScale(width, height);
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  const context = canvas.getContext('2d');
  if (!context) {
    throw new Error('This browser has no canvas to draw on.');
  }

  const palette = readPalette();
  context.fillStyle = palette.well;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, (margin - around.x) * scale, (margin - around.y) * scale);

  const order = nodes.toSorted((a, b) => Number(isSection(b)) - Number(isSection(a)) || a.z - b.z);
  for (let at = 0; at < order.length; at += atOnce) {
    const some = order.slice(at, at + atOnce);
    const pictures = await Promise.all(
      some.map((node) => readPicture(node, (boxes.get(node.key)?.width ?? 0) * scale)),
    );
    for (const [index, node] of some.entries()) {
      const box = boxes.get(node.key);
      const picture = pictures[index];
      if (box) {
        drawNode(context, node, box, palette);
      }
      if (box && picture) {
        context.save();
        context.beginPath();
        context.roundRect(box.x, box.y, box.width, box.height, nodeRadius);
        context.clip();
        drawCovering(context, picture, box);
        context.restore();
      }
      picture?.close();
    }
  }

  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The picture is too large.'))), 'image/png');
  });
}

async function readPicture(node: BoardNode, width: number): Promise<ImageBitmap | undefined> {
  const item = node.item;
  const small = item?.thumb_url ?? item?.preview_url;
  const address =
    item?.type === 'IMG' && width > 512 ? item.url : (small ?? (item?.type === 'IMG' ? item.url : undefined));
  if (!address) {
    return undefined;
  }
  try {
    const response = await fetch(address, { credentials: 'omit' });
    return response.ok ? await createImageBitmap(await response.blob()) : undefined;
  } catch {
    return undefined;
  }
}

/** saveFile lets the browser save a file. */
export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
