import { ReactFlow, SelectionMode, useReactFlow, useStoreApi, type Viewport } from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { type PointerEvent, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { part } from '../ui/part';
import styles from './Canvas.module.css';
import { useBoard } from './context';
import { FarProvider, useFarStage } from './far';
import { applyNodes, type FlowNode, toFlowNode } from './flow';
import { type GuideHandle, GuideLines } from './GuideLines';
import { MediaNode } from './MediaNode';
import { RunNode } from './RunNode';
import { SectionNode, TextNode } from './TextNode';
import { useMovement } from './useMovement';

const FarView = part(() => import('./FarView').then(({ FarView }) => ({ default: FarView })));
const Cursors = part(() => import('./Cursors').then(({ Cursors }) => ({ default: Cursors })));

export type Tool = 'select' | 'hand';

type Props = {
  tool: Tool;
  /** Where to look at first; without it everything is shown. */
  view: Viewport | undefined;
  onView: (view: Viewport) => void;
  /** Whether the pointer is a finger: it moves the view, and a tap selects. */
  coarse: boolean;
};

const nodeTypes = { media: MediaNode, text: TextNode, section: SectionNode, run: RunNode };

// Above this number only nodes in view have elements, and from afar one canvas shows them; below, nodes that enter cost
// more than that saves.
const manyNodes = 300;
const selectedShown = 100;

// From this zoom on the view is shifted as one layer while it moves.
const nearZoom = 0.6;

/** Canvas is the table: it shows the nodes, and takes the pointer, the wheel and touches. */
export function Canvas({ tool, view, onView, coarse }: Props) {
  const { session, actions } = useBoard();
  const { editor, sync, sender, presence } = session;
  const store = useStoreApi<FlowNode>();
  const flow = useReactFlow<FlowNode>();
  const frame = useRef<HTMLDivElement>(null);
  const guides = useRef<GuideHandle>(null);
  const [first] = useState(() => sync.all().map((node) => toFlowNode(node, undefined)));
  const [many, setMany] = useState(first.length > manyNodes);
  const [stage, endEntering] = useFarStage(many, view);

  // Changes of the board reach the canvas once a frame, past React.
  useEffect(() => {
    let waiting = new Set<string>();
    let request = 0;
    const draw = () => {
      cancelAnimationFrame(request);
      request = 0;
      const { nodes, setNodes } = store.getState();
      const next = applyNodes(nodes, waiting, (key) => sync.get(key));
      waiting = new Set();
      setNodes(next);
      setMany(next.length > manyNodes);
      const chosen = editor.getSelection();
      if (chosen.some((key) => !sync.get(key))) {
        editor.noteSelection(chosen.filter((key) => sync.get(key)));
      }
    };

    waiting = new Set([...sync.all().map((node) => node.key), ...store.getState().nodes.map((node) => node.id)]);
    draw();
    const stop = session.subscribe((keys) => {
      const { nodeLookup } = store.getState();
      for (const key of keys) {
        // What I drag is on the canvas already.
        if (!nodeLookup.get(key)?.dragging || !sync.get(key)) {
          waiting.add(key);
        }
      }
      if (waiting.size > 0) {
        request ||= requestAnimationFrame(draw);
      }
    });
    editor.measure = (key) => store.getState().nodeLookup.get(key)?.measured;
    editor.select = (keys) => {
      draw();
      const chosen = new Set(keys);
      const { nodes, setNodes } = store.getState();
      setNodes(
        nodes.map((node) =>
          node.selected === chosen.has(node.id) ? node : { ...node, selected: chosen.has(node.id) },
        ),
      );
      editor.noteSelection(keys);
    };
    return () => {
      stop();
      cancelAnimationFrame(request);
    };
  }, [session, store, sync, editor]);

  const showGuides = useCallback<GuideHandle['show']>((lines) => guides.current?.show(lines), []);
  const movement = useMovement(showGuides);
  const dragHandlers = useMemo(
    () => ({
      onNodeDragStart: (_: unknown, node: FlowNode, nodes: FlowNode[]) =>
        movement.start(nodes.length > 0 ? nodes : [node]),
      onNodeDrag: movement.move,
      onNodeDragStop: movement.stop,
      onSelectionDragStart: (_: unknown, nodes: FlowNode[]) => movement.start(nodes),
      onSelectionDrag: movement.move,
      onSelectionDragStop: movement.stop,
    }),
    [movement],
  );

  const onSelectionChange = useCallback(
    ({ nodes }: { nodes: FlowNode[] }) => {
      editor.noteSelection(nodes.map((node) => node.id));
      const ids = nodes.flatMap((node) => sync.get(node.id)?.id ?? []);
      sender.show({ selected: ids.slice(0, selectedShown) });
    },
    [editor, sync, sender],
  );

  // While the view moves near, it is drawn once and shifted; at rest it is drawn sharply for its zoom. From afar this would
  // cost more than it saves: browsers draw such a layer at its full size, however small it is shown.
  const setMoving = (moving: boolean) =>
    frame.current?.toggleAttribute('data-moving', moving && flow.getZoom() >= nearZoom);
  const setZoom = (zoom: number) => frame.current?.style.setProperty('--zoom', String(zoom));
  const onPointerMove = (event: PointerEvent) => {
    if (presence.getOthers().length > 0) {
      const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }, { snapToGrid: false });
      sender.show({ cursor: { x: Math.round(x), y: Math.round(y) } });
    }
  };
  // Keys go on at the node that was clicked.
  const onPointerUp = () => {
    if (document.activeElement === document.body || document.activeElement?.contains(frame.current)) {
      document.querySelector<HTMLElement>('[data-board-focus]')?.focus({ preventScroll: true });
    }
  };
  const hand = tool === 'hand';

  return (
    <div
      ref={frame}
      className={styles.canvas}
      data-tool={tool}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerUp}
      onPointerLeave={() => sender.show({ cursor: null })}
    >
      <FarProvider value={stage}>
        <ReactFlow<FlowNode>
          defaultNodes={first}
          nodeTypes={nodeTypes}
          {...dragHandlers}
          onSelectionChange={onSelectionChange}
          onNodeDoubleClick={(_, node) => sync.get(node.id)?.kind === 'TEXT' && actions.edit(node.id)}
          onInit={({ getZoom }) => setZoom(getZoom())}
          onMoveStart={() => setMoving(true)}
          onMoveEnd={(_, viewport) => {
            setMoving(false);
            setZoom(viewport.zoom);
            onView(viewport);
          }}
          defaultViewport={view}
          fitView={!view && first.length > 0}
          fitViewOptions={fitOptions}
          minZoom={0.08}
          maxZoom={8}
          onlyRenderVisibleElements={many}
          panOnScroll
          panOnDrag={hand || coarse ? true : middleAndRight}
          selectionOnDrag={!hand && !coarse}
          selectionMode={SelectionMode.Partial}
          selectionKeyCode={coarse ? null : 'Shift'}
          multiSelectionKeyCode={multiKeys}
          nodesDraggable={!hand}
          elementsSelectable={!hand}
          zoomOnDoubleClick={false}
          elevateNodesOnSelect={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          disableKeyboardA11y
          deleteKeyCode={null}
          nodeDragThreshold={2}
          attributionPosition="bottom-left"
          proOptions={credit}
        >
          <GuideLines ref={guides} />
          <Suspense>
            <Cursors />
          </Suspense>
          <Suspense>{many && <FarView stage={stage} onReady={endEntering} />}</Suspense>
        </ReactFlow>
      </FarProvider>
    </div>
  );
}

const fitOptions = { padding: 0.12, maxZoom: 1 };
const middleAndRight = [1, 2];
const multiKeys = ['Meta', 'Control', 'Shift'];
// The licence asks for no mark on the canvas; the notice names the library.
const credit = { hideAttribution: true };
