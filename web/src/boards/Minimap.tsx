import { useReactFlow, useStoreApi } from '@xyflow/react';
import { type PointerEvent, useEffect, useRef } from 'react';
import { boundsOf } from './arrange';
import styles from './Canvas.module.css';
import { useBoard } from './context';
import type { FlowNode } from './flow';
import { isSection } from './model';
import { watchTheme } from './theme';

const width = 168;
const height = 112;
const margin = 10;
const redrawAfter = 120;

type Scale = { x: number; y: number; factor: number };

/** Minimap shows the whole board small, with a frame around what is seen; a click or a drag moves the view. */
export function Minimap() {
  const { session } = useBoard();
  const { editor, sync } = session;
  const store = useStoreApi<FlowNode>();
  const flow = useReactFlow();
  const canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<HTMLSpanElement>(null);
  const scale = useRef<Scale>({ x: 0, y: 0, factor: 1 });

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;

    // The frame moves with each step of the view; the nodes are drawn only when they change.
    const moveFrame = () => {
      const { transform, width: seenWidth, height: seenHeight } = store.getState();
      const [x, y, zoom] = transform;
      const { factor, x: left, y: top } = scale.current;
      if (view.current) {
        view.current.style.transform = `translate(${left + (-x / zoom) * factor}px, ${top + (-y / zoom) * factor}px)`;
        view.current.style.width = `${(seenWidth / zoom) * factor}px`;
        view.current.style.height = `${(seenHeight / zoom) * factor}px`;
      }
    };
    const draw = () => {
      timer = undefined;
      const context = canvas.current?.getContext('2d');
      if (!context || !canvas.current) {
        return;
      }
      const nodes = sync.all();
      const boxes = editor.boxes(nodes);
      scale.current = scaleOf(boxes);
      const { factor, x, y } = scale.current;
      context.setTransform(2, 0, 0, 2, 0, 0);
      context.clearRect(0, 0, width, height);
      context.fillStyle = getComputedStyle(canvas.current).color;
      for (const [index, box] of boxes.entries()) {
        const node = nodes[index];
        context.globalAlpha = node && isSection(node) ? 0.4 : 1;
        const size = [Math.max(1.5, box.width * factor), Math.max(1.5, box.height * factor)] as const;
        context.beginPath();
        context.roundRect(x + box.x * factor, y + box.y * factor, ...size, 1.5);
        context.fill();
      }
      moveFrame();
    };
    const later = () => {
      timer ??= setTimeout(draw, redrawAfter);
    };

    draw();
    later();
    const stops = [session.subscribe(later), store.subscribe(moveFrame), watchTheme(later)];
    return () => {
      clearTimeout(timer);
      for (const stop of stops) {
        stop();
      }
    };
  }, [session, store, editor, sync]);

  const goTo = (event: PointerEvent) => {
    if (event.buttons !== 1) {
      return;
    }
    const box = event.currentTarget.getBoundingClientRect();
    const { factor, x, y } = scale.current;
    const to = { x: (event.clientX - box.x - x) / factor, y: (event.clientY - box.y - y) / factor };
    void flow.setCenter(to.x, to.y, { zoom: flow.getZoom() });
  };

  return (
    <div
      className={styles.minimap}
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        goTo(event);
      }}
      onPointerMove={goTo}
    >
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: this canvas cannot be focused. */}
      <canvas ref={canvas} width={width * 2} height={height * 2} aria-hidden="true" />
      <span ref={view} />
    </div>
  );
}

function scaleOf(boxes: Array<{ x: number; y: number; width: number; height: number }>): Scale {
  const around = boundsOf(boxes);
  const room = { width: Math.max(around.width, 400), height: Math.max(around.height, 260) };
  const factor = Math.min((width - 2 * margin) / room.width, (height - 2 * margin) / room.height);

  return {
    factor,
    x: (width - around.width * factor) / 2 - around.x * factor,
    y: (height - around.height * factor) / 2 - around.y * factor,
  };
}
