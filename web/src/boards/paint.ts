import { averageColor } from '../ui/blurhash';
import { type BoardNode, type Box, isHeading, isSection, plainText } from './model';

// Nodes drawn on a canvas: for the board as a picture, and for the board seen from afar. Measures and colours are those of Node.module.css.

export type Palette = { well: string; ink: string; memo: string; frame: string; section: string; field: string };
type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

export const nodeRadius = 9;
const sectionRadius = 18;
// Lines lower than this, in pixels, cannot be read and are drawn as bars.
const readableLine = 5;

/** readPalette returns the colours of nodes in the theme that is shown. */
export function readPalette(): Palette {
  const probe = document.createElement('span');
  document.body.append(probe);
  const read = (value: string) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const palette = {
    well: read('var(--well)'),
    ink: read('var(--ink)'),
    field: read('var(--field)'),
    memo: read('light-dark(#fdf3d7, #3a3219)'),
    frame: read('light-dark(#d8d1c3, #3b3832)'),
    section: read('light-dark(rgb(255 255 255 / 0.45), rgb(255 255 255 / 0.025))'),
  };
  probe.remove();

  return palette;
}

/** drawNode draws a node without its picture: in place of that, its average colour. A zoom says how large the drawing is shown. */
export function drawNode(context: Context, node: BoardNode, box: Box, palette: Palette, zoom = 1): void {
  const heading = isHeading(node);
  if (isSection(node)) {
    fillBox(context, box, sectionRadius, palette.section);
    context.strokeStyle = palette.frame;
    context.lineWidth = 1.5;
    context.stroke();
    const head = { ...box, x: box.x + 24, y: box.y + 18, width: box.width - 48 };
    drawText(context, node, head, palette.ink, zoom);
  } else if (heading) {
    drawText(context, node, box, palette.ink, zoom);
  } else if (node.kind === 'TEXT') {
    fillBox(context, box, nodeRadius, palette.memo);
    drawText(context, node, { ...box, x: box.x + 14, y: box.y + 12, width: box.width - 28 }, palette.ink, zoom);
  } else {
    fillBox(context, box, nodeRadius, node.item?.blurhash ? averageColor(node.item.blurhash) : palette.field);
  }
}

function fillBox(context: Context, box: Box, radius: number, color: string): void {
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, radius);
  context.fillStyle = color;
  context.fill();
}

/** drawCovering draws a picture so that it covers a box; what does not fit is outside of the box. */
export function drawCovering(context: Context, picture: ImageBitmap, box: Omit<Box, 'key'>): void {
  const scale = Math.max(box.width / picture.width, box.height / picture.height);
  const width = picture.width * scale;
  const height = picture.height * scale;
  context.drawImage(picture, box.x + (box.width - width) / 2, box.y + (box.height - height) / 2, width, height);
}

type Row = { words: string; width: number };

// The lines of a text are found once for each version of its node.
const rowsOf = new WeakMap<BoardNode, Row[]>();

function drawText(context: Context, node: BoardNode, box: Box, color: string, zoom: number): void {
  const heading = isHeading(node);
  const line = heading ? 30 : 19;
  context.fillStyle = color;
  context.font = heading
    ? '560 24px "Studio Serif", Georgia, serif'
    : '400 13.5px "Studio Sans", system-ui, sans-serif';
  context.textBaseline = 'middle';
  const measure = (part: string) => context.measureText(part).width;
  let rows = rowsOf.get(node);
  if (!rows) {
    rows = breakLines(plainText(node), box.width, measure).map((words) => ({ words, width: measure(words) }));
    rowsOf.set(node, rows);
  }

  const readable = line * zoom >= readableLine;
  context.globalAlpha = readable ? 1 : 0.35;
  let y = box.y + line / 2;
  for (const { words, width } of rows) {
    if (readable) {
      context.fillText(words, box.x, y);
    } else {
      context.fillRect(box.x, y - line / 5, width, line / 2.5);
    }
    y += line;
  }
  context.globalAlpha = 1;
}

/** breakLines breaks a text into lines that fit a width. */
export function breakLines(words: string, width: number, measure: (part: string) => number): string[] {
  const lines: string[] = [];
  for (const paragraph of words.split('\n')) {
    let line = '';
    for (const word of paragraph.split(' ')) {
      const longer = line ? `${line} ${word}` : word;
      if (line && measure(longer) > width) {
        lines.push(line);
        line = word;
      } else {
        line = longer;
      }
    }
    lines.push(line);
  }

  return lines;
}
