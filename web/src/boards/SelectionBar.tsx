import { useStore, useStoreApi, ViewportPortal } from '@xyflow/react';
import { useEffect, useRef } from 'react';
import { text } from '../text/boards';
import { Button, IconButton } from '../ui/Button';
import { classes } from '../ui/classes';
import { Menu, type MenuItem } from '../ui/Menu';
import { useSmallScreen } from '../ui/screen';
import { boundsOf } from './arrange';
import styles from './Board.module.css';
import { useBoard, useSelection } from './context';
import { inputRefOf } from './inputs';

// Above a selection that lies higher than this the bar would be under the head of the board.
const barRoom = 124;

/** SelectionBar floats above what is selected, or below it where there is no room, with what can be done to it. */
export function SelectionBar() {
  const { session, actions, editing } = useBoard();
  const { editor } = session;
  const selection = useSelection();
  const nodes = editor.selectedNodes();
  const place = useRef<HTMLDivElement>(null);
  const store = useStoreApi();
  const zoom = useStore((state) => state.transform[2]);
  const dragging = useStore((state) => state.paneDragging || state.userSelectionActive);

  const small = useSmallScreen();
  const [first] = nodes;

  // The bar follows its nodes without React, once for each change of the board.
  useEffect(() => {
    const follow = () => {
      const around = boundsOf(editor.boxes(selection.flatMap((key) => editor.node(key) ?? [])));
      if (place.current) {
        const { transform, height } = store.getState();
        const [, top, scale] = transform;
        const end = around.y + around.height;
        const below = around.y * scale + top < barRoom && end * scale + top < height - barRoom;
        // What is higher than the window has the bar within it, under the head of the board.
        const y = below ? end : Math.max(around.y, (barRoom - top) / scale);
        place.current.style.transform = `translate(${around.x + around.width / 2}px, ${y}px)`;
        place.current.dataset.side = below ? 'below' : 'above';
      }
    };
    follow();
    const stops = [session.subscribe(follow), store.subscribe(follow)];
    return () => {
      for (const stop of stops) {
        stop();
      }
    };
  });

  if (!first || editing || dragging) {
    return null;
  }
  const withInput = nodes.filter((node) => inputRefOf(node));
  const repeatable =
    nodes.length === 1 && (first.kind === 'LIBRARY_REF' || first.kind === 'GENERATION') && !first.missing;
  const several = nodes.length > 1;

  const bar = (
    <div
      className={classes(styles.bar, 'nopan', 'nodrag', 'nowheel')}
      role="toolbar"
      aria-label={text.selection}
      style={small ? undefined : { scale: 1 / zoom }}
    >
      {withInput.length > 0 && (
        <Button small kind="bare" icon="wand" onClick={() => actions.takeAsInput(first.key)}>
          {text.useAsInput}
        </Button>
      )}
      {repeatable && (
        <Button small kind="bare" icon="repeat" onClick={() => actions.runAgain(first.key)}>
          {text.runAgain}
        </Button>
      )}
      {nodes.length === 1 && first.kind === 'TEXT' && (
        <Button small kind="bare" icon="text" onClick={() => actions.edit(first.key)}>
          {text.edit}
        </Button>
      )}
      <i />
      {several && <Menu small label={text.alignMenu} icon="align" items={alignItems(editor)} />}
      {nodes.length > 2 && <Menu small label={text.distributeMenu} icon="distribute" items={spreadItems(editor)} />}
      <Menu small label={text.orderMenu} icon="layers" items={orderItems(editor)} />
      <IconButton small icon="board" label={text.frame} onClick={() => actions.edit(editor.frame(text.section))} />
      <IconButton small icon="trash" label={text.takeOff} onClick={() => actions.takeOff(selection)} />
    </div>
  );

  // A telephone has no room beside what is selected: there the bar stays at the foot.
  if (small) {
    return <div className={styles.barFoot}>{bar}</div>;
  }
  return (
    <ViewportPortal>
      <div ref={place} className={styles.barPlace}>
        {bar}
      </div>
    </ViewportPortal>
  );
}

type Editor = ReturnType<typeof useBoard>['session']['editor'];

const alignItems = (editor: Editor): MenuItem[] => [
  { label: text.alignLeft, note: 'Alt A', onSelect: () => editor.align('left') },
  { label: text.alignCenter, onSelect: () => editor.align('center') },
  { label: text.alignRight, note: 'Alt D', onSelect: () => editor.align('right') },
  'line',
  { label: text.alignTop, note: 'Alt W', onSelect: () => editor.align('top') },
  { label: text.alignMiddle, onSelect: () => editor.align('middle') },
  { label: text.alignBottom, note: 'Alt S', onSelect: () => editor.align('bottom') },
];

const spreadItems = (editor: Editor): MenuItem[] => [
  { label: text.distributeAcross, onSelect: () => editor.distribute('across') },
  { label: text.distributeDown, onSelect: () => editor.distribute('down') },
];

const orderItems = (editor: Editor): MenuItem[] => [
  { label: text.toFront, note: ']', onSelect: () => editor.stack('front') },
  { label: text.toBack, note: '[', onSelect: () => editor.stack('back') },
  { label: text.duplicate, icon: 'copy', note: 'Ctrl D', onSelect: () => editor.duplicate() },
];
