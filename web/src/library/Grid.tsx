import {
  type DragEvent,
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type Ref,
  useEffect,
  useImperativeHandle,
  useMemo,
  useRef,
  useSyncExternalStore,
} from 'react';
import { writeDragged } from '../data/dragged';
import { useMedia } from '../ui/screen';
import styles from './Grid.module.css';
import { heightOf, type Layout, moveIndex, topOfRow } from './geometry';
import { draggedOf } from './items';
import { Scrubber, type ScrubberHandle } from './Scrubber';
import type { Selection } from './selection';
import type { Shelf } from './shelf';
import { Tile } from './Tile';
import { useGridLayout } from './useGridLayout';
import { useGridWindow } from './useGridWindow';
import { useLongPress } from './useLongPress';

export type GridHandle = {
  focus: () => void;
  /** Scrolls as little as needed to show an item, or brings it to the middle. */
  show: (index: number, center?: boolean) => void;
};

type Props = {
  label: string;
  shelf: Shelf;
  selection: Selection;
  /** The name of the list, under which its position is remembered. */
  list: string;
  /** Whether the list is being read anew. */
  busy: boolean;
  active: number;
  /** Whether the active item is shown beside the grid. */
  open: boolean;
  /** Whether a click selects. */
  selecting: boolean;
  dense: boolean;
  onMove: (index: number) => void;
  onOpen: (index: number) => void;
  onLarge: (index: number) => void;
  onSelect: (index: number, range: boolean) => void;
  ref: Ref<GridHandle>;
};

function indexOf(target: EventTarget): number {
  const tile = (target as Element).closest<HTMLElement>('[data-index]');

  return tile ? Number(tile.dataset.index) : -1;
}

/** Grid shows a list of any length as rows of equal tiles; only the rows near the view exist. */
export function Grid(props: Props) {
  const { label, shelf, selection, list, active, open, selecting, dense, ref } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const scrubber = useRef<ScrubberHandle>(null);
  const version = useSyncExternalStore(shelf.subscribe, shelf.version);
  const layout = useGridLayout(scroller, dense);
  const window = useGridWindow({ scroller, scrubber, shelf, layout, list, active });
  // A finger that rests on a tile selects it; with a mouse it is dragged.
  const touch = useMedia('(pointer: coarse)');
  const longPress = useLongPress((target) => props.onSelect(indexOf(target), false));
  const total = shelf.total;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the times change with what is read.
  const points = useMemo(() => shelf.points(), [shelf, version]);

  useImperativeHandle(ref, () => ({
    focus: () => scroller.current?.focus({ preventScroll: true }),
    show: window.scrollToIndex,
  }));

  useEffect(() => {
    if (document.activeElement === document.body) {
      scroller.current?.focus({ preventScroll: true });
    }
  }, []);

  const onClick = (event: MouseEvent) => {
    const index = indexOf(event.target);
    if (index < 0 || longPress.wasLong()) {
      return;
    }
    const ticked = (event.target as Element).closest('[data-tick]') !== null;
    if (event.shiftKey || event.ctrlKey || event.metaKey || ticked || selecting) {
      props.onSelect(index, event.shiftKey);
    } else {
      props.onOpen(index);
    }
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== scroller.current || event.ctrlKey || event.metaKey || event.altKey || !layout) {
      return;
    }
    const next = moveIndex(event.key, active, total, layout, scroller.current.scrollTop);
    if (next !== undefined) {
      event.preventDefault();
      window.scrollToIndex(next);
      props.onMove(next);
    } else if (event.key === 'Enter' && active >= 0) {
      event.preventDefault();
      props.onOpen(active);
    } else if (event.key === ' ' && active >= 0) {
      event.preventDefault();
      props.onLarge(active);
    }
  };

  const onDragStart = (event: DragEvent) => {
    const item = shelf.itemAt(indexOf(event.target));
    if (item) {
      const items = selection.has(item.id) ? selection.list() : [item];
      writeDragged(event.dataTransfer, items.map(draggedOf));
    }
  };

  const numbers: number[] = [];
  for (let row = window.rows.first; row <= window.rows.last; row++) {
    numbers.push(row);
  }
  const activeRow = layout && active >= 0 ? Math.floor(active / layout.columns) : -1;
  const activeShown = activeRow >= window.rows.first && activeRow <= window.rows.last;

  return (
    <div className={styles.frame}>
      <div
        ref={scroller}
        role="grid"
        tabIndex={0}
        aria-label={label}
        aria-busy={props.busy}
        aria-rowcount={layout ? Math.ceil(total / layout.columns) : undefined}
        aria-colcount={layout?.columns}
        aria-multiselectable="true"
        aria-activedescendant={activeShown ? `tile-${active}` : undefined}
        data-selecting={selecting || undefined}
        data-open={open || undefined}
        className={styles.scroller}
        onClick={onClick}
        onDoubleClick={(event) => indexOf(event.target) >= 0 && props.onLarge(indexOf(event.target))}
        onKeyDown={onKeyDown}
        onDragStart={onDragStart}
        {...longPress.listeners}
      >
        <div role="rowgroup" className={styles.canvas} style={{ height: layout ? heightOf(layout, total) : 0 }}>
          {layout &&
            numbers.map((row) => (
              <Row
                key={row}
                row={row}
                layout={layout}
                shelf={shelf}
                total={total}
                version={version}
                active={row === activeRow ? active : -1}
                quick={window.flying}
                draggable={!touch}
                selection={selection}
              />
            ))}
        </div>
      </div>
      {layout && heightOf(layout, total) > layout.height * 1.5 && (
        <Timeline ref={scrubber} points={points} total={total} height={layout.height} onScrub={window.scrollToPart} />
      )}
    </div>
  );
}

// The timeline stays as it is while rows come and go.
const Timeline = memo(Scrubber);

type RowProps = {
  row: number;
  layout: Layout;
  shelf: Shelf;
  total: number;
  /** The list's version, so that the row is drawn when its items are read. */
  version: number;
  active: number;
  quick: boolean;
  draggable: boolean;
  selection: Selection;
};

const Row = memo(function Row({ row, layout, shelf, total, active, quick, draggable, selection }: RowProps) {
  const first = row * layout.columns;
  const count = Math.min(layout.columns, total - first);

  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names the active tile.
    <div
      role="row"
      aria-rowindex={row + 1}
      className={styles.row}
      style={{
        transform: `translateY(${topOfRow(layout, row)}px)`,
        gridTemplateColumns: `repeat(${layout.columns}, minmax(0, 1fr))`,
      }}
    >
      {Array.from({ length: Math.max(0, count) }, (_, column) => (
        <Tile
          key={first + column}
          id={`tile-${first + column}`}
          item={shelf.itemAt(first + column)}
          index={first + column}
          column={column}
          active={first + column === active}
          quick={quick}
          draggable={draggable}
          selection={selection}
        />
      ))}
    </div>
  );
});
