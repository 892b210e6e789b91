import { useReactFlow } from '@xyflow/react';
import { type KeyboardEvent, memo, useEffect, useId, useMemo, useRef, useState } from 'react';
import { text } from '../text/boards';
import { readingOrder } from './arrange';
import styles from './Board.module.css';
import { useBoard, useSelection } from './context';
import type { BoardNode } from './model';
import { nameOf } from './names';

/**
 * NodeList names everything on the board for screen readers, in reading order. It takes the focus for the canvas: Tab
 * goes from node to node and on from the last one, and Escape lets the next Tab leave the board.
 */
export function NodeList() {
  const { session } = useBoard();
  const { editor, sync, runs } = session;
  const flow = useReactFlow();
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const selection = useSelection();
  const [focused, setFocused] = useState(false);
  const nodes = useNodesWhile(focused);
  const current = selection.length === 1 ? selection[0] : undefined;
  const chosen = useMemo(() => new Set(selection), [selection]);

  const go = (key: string | undefined) => {
    const node = key === undefined ? undefined : sync.get(key);
    if (!node) {
      return;
    }
    editor.select([node.key]);
    showNode(flow, editor.boxOf(node));
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      editor.select([]);
    }
    if (event.key !== 'Tab') {
      return;
    }
    const order = readingOrder(editor.boxes()).map((box) => box.key);
    const at = current === undefined ? -1 : order.indexOf(current);
    const next = at + (event.shiftKey ? -1 : 1);
    if (at >= 0 && order[next] !== undefined) {
      event.preventDefault();
      go(order[next]);
    }
  };

  const onFocus = () => {
    setFocused(true);
    if (current === undefined && list.current?.matches(':focus-visible')) {
      go(readingOrder(editor.boxes())[0]?.key);
    }
  };

  return (
    <div
      ref={list}
      role="listbox"
      aria-multiselectable="true"
      aria-label={text.nodes}
      aria-describedby={`${id}-help`}
      aria-activedescendant={focused && current ? `${id}-${current}` : undefined}
      tabIndex={0}
      data-board-focus
      data-bare={selection.length === 0 || undefined}
      className={styles.list}
      onFocus={onFocus}
      onBlur={() => setFocused(false)}
      onKeyDown={onKeyDown}
    >
      <span id={`${id}-help`} hidden>
        {text.nodesHelp}
      </span>
      {nodes.map((node) => (
        <Entry
          key={node.key}
          id={`${id}-${node.key}`}
          selected={chosen.has(node.key)}
          name={text.atPlace(nameOf(node, runs.runOf(node.ref ?? '')), node.x, node.y)}
        />
      ))}
    </div>
  );
}

const Entry = memo(function Entry({ id, selected, name }: { id: string; selected: boolean; name: string }) {
  return (
    <div id={id} role="option" aria-selected={selected} tabIndex={-1}>
      {name}
    </div>
  );
});

/** useNodesWhile returns the nodes in reading order, and follows their changes a few times a second while they are read. */
function useNodesWhile(followed: boolean): BoardNode[] {
  const { session } = useBoard();
  const { editor, sync } = session;
  const read = () => readingOrder(editor.boxes()).flatMap((box) => sync.get(box.key) ?? []);
  const [nodes, setNodes] = useState(read);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is read anew when the board changes.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = () => {
      timer ??= setTimeout(
        () => {
          timer = undefined;
          setNodes(read());
        },
        followed ? 200 : 1500,
      );
    };
    later();
    const stop = session.subscribe(later);
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [session, followed]);

  return nodes;
}

/** showNode moves the view so that a node can be seen, if it cannot. */
function showNode(
  flow: ReturnType<typeof useReactFlow>,
  box: { x: number; y: number; width: number; height: number },
): void {
  const from = flow.flowToScreenPosition({ x: box.x, y: box.y });
  const to = flow.flowToScreenPosition({ x: box.x + box.width, y: box.y + box.height });
  const seen = from.x > 90 && from.y > 70 && to.x < innerWidth - 20 && to.y < innerHeight - 20;
  if (!seen) {
    void flow.setCenter(box.x + box.width / 2, box.y + box.height / 2, { zoom: flow.getZoom(), duration: 180 });
  }
}
