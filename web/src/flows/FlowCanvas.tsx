import {
  type Connection,
  type Edge,
  type EdgeChange,
  type Node,
  type NodeChange,
  ReactFlow,
  useEdgesState,
  useNodesState,
  useReactFlow,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { text } from '../text/flows';
import { Button, IconButton } from '../ui/Button';
import { isTyping, useKeys } from '../ui/keys';
import { useToast } from '../ui/Toast';
import { useFlowEditor } from './context';
import { removeStep } from './edit';
import styles from './FlowCanvas.module.css';
import { FormNode } from './FormNode';
import { cutLine, drawWire, type Line, linesOf, refuseWire, rowsOf, type Tools } from './graph';
import { LineEdge } from './LineEdge';
import { arrange, formId, layersOf, type Place } from './layout';
import { type FlowDraft, leavesOfFlow } from './model';
import { StepNode } from './StepNode';

const nodeTypes = { form: FormNode, step: StepNode };
const edgeTypes = { default: LineEdge };

/** FlowCanvas shows a flow as a graph: nodes are moved, and results are connected with inputs by drawing lines. */
export function FlowCanvas({ places }: { places: Map<string, Place> }) {
  const editor = useFlowEditor();
  const { draft, tools, check, run, selected, select, change } = editor;
  const flow = useReactFlow();
  const toast = useToast();
  const frame = useRef<HTMLDivElement>(null);
  const [nodes, setNodes, applyNodeChanges] = useNodesState<Node>([]);
  const [edges, setEdges, applyEdgeChanges] = useEdgesState<Edge>([]);
  const [refusal, setRefusal] = useState<string>();
  // The canvas calls the end of a connection as it was given at its beginning.
  const refused = useRef<string>(undefined);
  const [tidied, setTidied] = useState(0);
  const lines = useMemo(() => linesOf(draft), [draft]);
  const hasRun = (run?.steps?.length ?? 0) > 0;

  // The nodes of the canvas keep what it has measured; places that were chosen stay.
  // biome-ignore lint/correctness/useExhaustiveDependencies: tidying up forgets the places that were chosen.
  useEffect(() => {
    const tidy = arrange(draft.steps, (id) => heightOf(draft, tools, id, hasRun));
    const countAt = (id: string) => check.problems.filter((problem) => problem.node === id).length;
    setNodes((before) => {
      const known = new Map(before.map((node) => [node.id, node]));
      const steps = draft.steps.map(({ id, tool }) => ({
        id,
        type: 'step',
        ariaLabel: text.stepNode(id, tools.get(tool)?.name ?? tool, countAt(id)),
      }));
      const form = { id: formId, type: 'form', ariaLabel: text.formNode(leavesOfFlow(draft.fields).length) };
      return [form, ...steps].map((node) => ({
        ...known.get(node.id),
        ...node,
        data: {},
        position: places.get(node.id) ?? tidy.get(node.id) ?? { x: 0, y: 0 },
        selected: node.id === selected,
      }));
    });
  }, [draft, tools, check.problems, hasRun, selected, places, tidied, setNodes]);

  useEffect(() => {
    setEdges((before) => {
      const chosen = new Set(before.filter((edge) => edge.selected).map((edge) => edge.id));
      const origins = [...new Set(lines.map(originOf))];
      return lines.map((line) => ({
        id: line.id,
        source: line.from,
        sourceHandle: line.fromHandle,
        target: line.to,
        targetHandle: line.toHandle,
        selected: chosen.has(line.id),
        ariaLabel: nameOfLine(line),
        data: { track: origins.indexOf(originOf(line)) },
      }));
    });
  }, [lines, setEdges]);

  // The view shows everything once the tools are read, since nodes have their sizes only then, and again when steps come,
  // go or stand in another order.
  const ready = draft.steps.every((step) => tools.has(step.tool)) && nodes.every((node) => node.measured);
  const order = useMemo(() => JSON.stringify([...layersOf(draft.steps)]), [draft.steps]);
  const isDrawn = nodes.length === draft.steps.length + 1;
  const shown = useRef<string>(undefined);
  useEffect(() => {
    if (ready && isDrawn && shown.current !== order) {
      shown.current = order;
      void flow.fitView(fitOptions);
    }
  }, [ready, isDrawn, order, flow]);

  const onNodesChange = useCallback(
    (changes: NodeChange[]) => {
      applyNodeChanges(changes);
      for (const one of changes) {
        if (one.type === 'position' && one.position) {
          places.set(one.id, one.position);
        }
      }
      const picks = changes.filter((one) => one.type === 'select');
      const next = picks.find((one) => one.selected);
      if (next) {
        select(next.id);
      } else if (picks.some((one) => one.id === selected)) {
        select(undefined);
      }
    },
    [applyNodeChanges, places, select, selected],
  );
  const onEdgesChange = useCallback((changes: EdgeChange[]) => applyEdgeChanges(changes), [applyEdgeChanges]);

  const isValid = (wire: Connection | Edge) => {
    const reason = refuseWire(draft, tools, wire as Connection);
    refused.current = reason;
    setRefusal(reason);
    return reason === undefined;
  };
  const onConnectEnd = () => {
    if (refused.current) {
      toast({ text: refused.current, seconds: 5 });
    }
    refused.current = undefined;
    setRefusal(undefined);
  };

  const remove = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (isTyping(target) || (target !== document.body && !frame.current?.contains(target))) {
      return;
    }
    const edgeId =
      target.closest<HTMLElement>('.react-flow__edge')?.dataset.id ?? edges.find((edge) => edge.selected)?.id;
    const line = lines.find((one) => one.id === edgeId);
    const id = target.closest<HTMLElement>('.react-flow__node')?.dataset.id ?? selected;
    if (line) {
      change((before) => cutLine(before, line));
    } else if (id !== undefined && id !== formId) {
      select(undefined);
      change((before) => removeStep(before, id));
    }
    frame.current?.focus({ preventScroll: true });
  };
  const tidy = () => {
    places.clear();
    setTidied(tidied + 1);
    requestAnimationFrame(() => void flow.fitView(fitOptions));
  };
  useKeys({ Delete: remove, Backspace: remove, '1': () => void flow.fitView(fitOptions) });

  return (
    <div ref={frame} tabIndex={-1} className={styles.canvas} role="group" aria-label={text.canvas}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        isValidConnection={isValid}
        onConnect={(wire) => change((before) => drawWire(before, tools, wire))}
        onConnectEnd={onConnectEnd}
        onPaneClick={() => select(undefined)}
        defaultEdgeOptions={edgeOptions}
        connectionRadius={28}
        minZoom={0.2}
        maxZoom={2}
        panOnScroll
        zoomOnDoubleClick={false}
        selectNodesOnDrag={false}
        multiSelectionKeyCode={null}
        selectionKeyCode={null}
        deleteKeyCode={null}
        nodeDragThreshold={2}
        fitViewOptions={fitOptions}
        proOptions={credit}
      />
      {draft.steps.length === 0 && (
        <div className={styles.empty}>
          <h2>{text.noSteps}</h2>
          <p className="soft">{text.noStepsHelp}</p>
          <Button kind="main" icon="plus" onClick={editor.addStep}>
            {text.addStep}
          </Button>
        </div>
      )}
      <div className={styles.tools}>
        <Button icon="plus" onClick={editor.addStep} aria-keyshortcuts="A">
          {text.addStep}
        </Button>
        <IconButton icon="distribute" label={text.tidy} onClick={tidy} />
        <IconButton icon="expand" label={text.showAll} onClick={() => void flow.fitView(fitOptions)} />
      </div>
      <p role="status" className={styles.refusal}>
        {refusal}
      </p>
    </div>
  );
}

/** heightOf estimates the height of a node before it is drawn. */
function heightOf(draft: FlowDraft, tools: Tools, id: string, hasRun: boolean): number {
  if (id === formId) {
    return 60 + Math.max(1, leavesOfFlow(draft.fields).length) * 28;
  }
  const step = draft.steps.find((one) => one.id === id);
  const rows = step ? rowsOf(step, tools.get(step.tool)).length + (step.for_each === undefined ? 0 : 1) : 0;

  return 104 + rows * 28 + (hasRun ? 90 : 0);
}

/** originOf names where a line begins. */
function originOf({ from, fromHandle }: Line): string {
  return `${from} ${fromHandle}`;
}

function nameOfLine({ from, fromHandle, to, input }: Line): string {
  const start = from === formId ? text.fieldOf(fromHandle.replace(/^field:/, '')) : text.resultsOf(from);

  return text.line(start, text.inputOf(to, input?.key ?? text.forEach));
}

const fitOptions = { padding: 0.14, maxZoom: 1, duration: 180 };
const edgeOptions = { interactionWidth: 18 };
// The licence asks for no mark on the canvas; the notice names the library.
const credit = { hideAttribution: true };
