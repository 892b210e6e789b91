import type { ReactFlowState } from '@xyflow/react';
import { FarPictures } from './farPictures';
import type { FlowNode } from './flow';
import { type Box, isPaintable } from './model';
import { drawNode, readPalette } from './paint';

// The canvas is larger than the window by this many pixels at each side, so that it is not drawn anew for each move.
const margin = 256;
// While the view is zoomed, the canvas is stretched within these bounds before it is drawn anew.
const leastStretch = 0.7;
const mostStretch = 1.4;
const restTime = 120;
// Pictures that arrive are drawn together.
const gatherTime = 200;
const longestWait = 1000;

type View = { x: number; y: number; zoom: number; width: number; height: number };
type Store = { getState: () => ReactFlowState<FlowNode>; subscribe: (listener: () => void) => () => void };

/** placeOf returns where a canvas has to lie that was painted for one view, when another is shown; and whether it covers that. */
export function placeOf(painted: View, shown: View): { x: number; y: number; scale: number; covers: boolean } {
  const scale = shown.zoom / painted.zoom;
  const x = shown.x - (painted.x + margin) * scale;
  const y = shown.y - (painted.y + margin) * scale;
  const right = x + (painted.width + 2 * margin) * scale;
  const bottom = y + (painted.height + 2 * margin) * scale;
  const covers = x <= 0 && y <= 0 && right >= shown.width && bottom >= shown.height;

  return { x, y, scale, covers };
}

/** FarPainter draws the nodes of a board on one canvas, which is shifted while the view moves. */
export class FarPainter {
  private readonly pictures = new FarPictures(() => this.paintSoon());
  private readonly stop: () => void;
  private palette = readPalette();
  private painted: (View & { nodes: FlowNode[] }) | undefined;
  private order: FlowNode[] = [];
  private hidden: string | undefined;
  private running = false;
  private request = 0;
  private gathering: ReturnType<typeof setTimeout> | undefined;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly store: Store,
    private readonly onReady: () => void,
  ) {
    this.stop = store.subscribe(() => this.follow());
  }

  /** start draws the board and follows it; onReady is called once what is seen has its pictures, or after a while. */
  start(): void {
    if (!this.running) {
      this.running = true;
      this.paint();
      this.waiting = setTimeout(this.onReady, longestWait);
    }
  }

  /** pause gives the canvas back; the pictures are kept for the next time. */
  pause(): void {
    this.running = false;
    this.painted = undefined;
    this.canvas.width = 0;
    this.canvas.height = 0;
    cancelAnimationFrame(this.request);
    this.request = 0;
    clearTimeout(this.gathering);
    this.gathering = undefined;
    clearTimeout(this.resting);
    clearTimeout(this.waiting);
  }

  close(): void {
    this.stop();
    this.pause();
    this.pictures.close();
  }

  /** hide leaves out a node that is shown by its element, such as a text that is being written. */
  hide(key: string | undefined): void {
    this.hidden = key;
    this.paintNext();
  }

  /** takeTheme draws the board in the colours of the page. */
  takeTheme(): void {
    this.palette = readPalette();
    this.paintNext();
  }

  private follow(): void {
    if (!this.painted) {
      return;
    }
    const view = this.view();
    const { scale, covers } = this.place(view);
    const resized = view.width !== this.painted.width || view.height !== this.painted.height;
    if (
      !covers ||
      resized ||
      scale < leastStretch ||
      scale > mostStretch ||
      this.store.getState().nodes !== this.painted.nodes
    ) {
      this.paintNext();
    } else if (scale !== 1) {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.paintNext(), restTime);
    }
  }

  private view(): View {
    const { transform, width, height } = this.store.getState();
    const [x, y, zoom] = transform;

    return { x, y, zoom, width, height };
  }

  private place(view: View) {
    const place = placeOf(this.painted ?? view, view);
    // At its own size the canvas lies on whole pixels, so that it stays sharp.
    const [x, y] = place.scale === 1 ? [Math.round(place.x), Math.round(place.y)] : [place.x, place.y];
    this.canvas.style.transform = `translate(${x}px, ${y}px) scale(${place.scale})`;

    return place;
  }

  private paintNext(): void {
    if (this.running) {
      this.request ||= requestAnimationFrame(() => this.paint());
    }
  }

  private paintSoon(): void {
    if (this.running) {
      this.gathering ??= setTimeout(() => this.paintNext(), gatherTime);
    }
  }

  private paint(): void {
    this.request = 0;
    clearTimeout(this.gathering);
    this.gathering = undefined;
    clearTimeout(this.resting);
    const { nodes } = this.store.getState();
    if (nodes !== this.painted?.nodes) {
      this.order = nodes.toSorted((a, b) => (a.zIndex ?? 0) - (b.zIndex ?? 0));
    }
    const view = this.view();
    this.painted = { ...view, nodes };

    const context = this.prepare(view);
    if (context) {
      this.pictures.startRound();
      for (const node of this.order) {
        this.paintNode(context, node, view);
      }
      this.pictures.endRound();
    }
    this.place(view);
    if (this.pictures.missing === 0) {
      this.onReady();
    }
  }

  /** prepare empties the canvas, at the size of the view, and lets it be drawn on in the measures of the board. */
  private prepare({ x, y, zoom, width, height }: View): CanvasRenderingContext2D | null {
    const { canvas } = this;
    const context = canvas.getContext('2d');
    const ratio = devicePixelRatio;
    const across = Math.round((width + 2 * margin) * ratio);
    const down = Math.round((height + 2 * margin) * ratio);
    if (canvas.width !== across || canvas.height !== down) {
      canvas.width = across;
      canvas.height = down;
      canvas.style.width = `${across / ratio}px`;
      canvas.style.height = `${down / ratio}px`;
    }
    context?.setTransform(1, 0, 0, 1, 0, 0);
    context?.clearRect(0, 0, across, down);
    context?.setTransform(zoom * ratio, 0, 0, zoom * ratio, (x + margin) * ratio, (y + margin) * ratio);

    return context;
  }

  private paintNode(context: CanvasRenderingContext2D, flow: FlowNode, view: View): void {
    const { node } = flow.data;
    const box = boxOf(flow);
    if (!isPaintable(node) || flow.id === this.hidden || !isInView(box, view)) {
      return;
    }

    const { item } = node;
    const address = item && (item.thumb_url ?? item.preview_url ?? (item.type === 'IMG' ? item.url : undefined));
    const picture = address && this.pictures.get(address, box, view.zoom * devicePixelRatio);
    if (picture) {
      context.drawImage(picture, box.x, box.y, box.width, box.height);
    } else {
      drawNode(context, node, box, this.palette, view.zoom);
    }
    if (item && item.type !== 'IMG') {
      drawMarks(context, box, item.type === 'VID');
    }
  }
}

function boxOf({ id, position, width, height, measured }: FlowNode): Box {
  return { key: id, ...position, width: width ?? measured?.width ?? 0, height: height ?? measured?.height ?? 0 };
}

function isInView(box: Box, { x, y, zoom, width, height }: View): boolean {
  const left = box.x * zoom + x;
  const top = box.y * zoom + y;

  return (
    left < width + margin &&
    top < height + margin &&
    left + box.width * zoom > -margin &&
    top + box.height * zoom > -margin
  );
}

/** drawMarks draws the badge of a file that is no picture, and the sign that it can be played. */
function drawMarks(context: CanvasRenderingContext2D, box: Box, plays: boolean): void {
  const x = box.x + box.width / 2;
  const y = box.y + box.height / 2;
  context.fillStyle = 'rgb(20 16 12 / 0.66)';
  context.beginPath();
  context.roundRect(box.x + 8, box.y + box.height - 30, 60, 22, 11);
  if (plays) {
    context.moveTo(x + 24, y);
    context.arc(x, y, 24, 0, 2 * Math.PI);
  }
  context.fill();
  if (plays) {
    context.fillStyle = '#fff';
    context.beginPath();
    context.moveTo(x - 5, y - 8);
    context.lineTo(x + 8, y);
    context.lineTo(x - 5, y + 8);
    context.fill();
  }
}
