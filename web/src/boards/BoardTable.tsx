import { useReactFlow, type Viewport } from '@xyflow/react';
import { type DragEvent, Suspense, useCallback, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { useAccount } from '../data/account';
import { hasDragged, hasFiles, readDragged } from '../data/dragged';
import { text } from '../text/boards';
import { classes } from '../ui/classes';
import { Progress } from '../ui/Progress';
import { part } from '../ui/part';
import { useToast } from '../ui/Toast';
import styles from './Board.module.css';
import { BoardCorner, BoardHead } from './BoardHead';
import { Canvas, type Tool } from './Canvas';
import { BoardContext, type BoardState, useBoard } from './context';
import type { SyncState } from './exchange';
import { inputRefOf } from './inputs';
import type { BoardNode, BoardSummary, Point } from './model';
import type { BoardSession } from './session';
import { Toolbar } from './Toolbar';
import { useBoardKeys } from './useBoardKeys';
import { useBoardMenu } from './useBoardMenu';
import { useRunActions } from './useRunActions';
import { draftsAround, useUploads } from './useUploads';
import { readView, useViewInAddress } from './view';
import { ZoomBar } from './ZoomBar';

// What is not needed to see the board is loaded after it, or when it is opened first.
const NodeList = part(() => import('./NodeList').then(({ NodeList }) => ({ default: NodeList })));
const SelectionBar = part(() => import('./SelectionBar').then(({ SelectionBar }) => ({ default: SelectionBar })));
const Minimap = part(() => import('./Minimap').then(({ Minimap }) => ({ default: Minimap })));
const Composer = part(() => import('./Composer').then(({ Composer }) => ({ default: Composer })));
const MediaPicker = part(() => import('../form/MediaPicker'));
const RenameDialog = part(() => import('./RenameDialog').then(({ RenameDialog }) => ({ default: RenameDialog })));

type Props = { session: BoardSession; board: BoardSummary; state: SyncState };
type Composing = { at: Point; place: Point; inputs: BoardNode[] };

/** BoardTable is an open board with everything around it: tools, selection, people, zoom and dialogs. */
export function BoardTable({ session, board, state }: Props) {
  const { editor } = session;
  const { teamId } = useAccount();
  const flow = useReactFlow();
  const toast = useToast();
  const frame = useRef<HTMLDivElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const pointer = useRef<Point>(undefined);
  const [tool, setTool] = useState<Tool>('select');
  const [editing, setEditing] = useState<string>();
  const [picking, setPicking] = useState(false);
  const [renaming, setRenaming] = useState(false);
  const [composing, setComposing] = useState<Composing>();
  const [dropping, setDropping] = useState(false);
  const [coarse] = useState(() => matchMedia('(pointer: coarse)').matches);
  const [first] = useState(() => readView(location.search));
  const keepView = useViewInAddress();
  const uploads = useUploads(editor, teamId);
  const { addRun, placeBeside, runAgain } = useRunActions(editor, teamId);

  const middle = useCallback((): Point => {
    const box = frame.current?.getBoundingClientRect();
    const { x = 0, y = 0, width = 0, height = 0 } = box ?? {};

    return flow.screenToFlowPosition({ x: x + width / 2, y: y + height / 2 });
  }, [flow]);
  const place = useCallback(
    (): Point => (pointer.current ? flow.screenToFlowPosition(pointer.current) : middle()),
    [flow, middle],
  );

  const composeAt = useCallback(
    (target: Point, inputs: BoardNode[]) => {
      const box = frame.current?.getBoundingClientRect();
      const screen = flow.flowToScreenPosition(target);
      setComposing({ at: { x: screen.x - (box?.x ?? 0), y: screen.y - (box?.y ?? 0) }, place: target, inputs });
    },
    [flow],
  );

  const takeOff = useCallback(
    (keys: string[]) => {
      const count = editor.remove(keys);
      if (count > 0) {
        toast({ text: text.takenOff(count), action: { label: text.undo, key: 'Z', run: () => editor.undo() } });
      }
    },
    [editor, toast],
  );

  const context = useMemo<BoardState>(
    () => ({
      session,
      editing,
      actions: {
        edit: setEditing,
        runAgain: (key) => void runAgain(key),
        takeAsInput: (key) =>
          composeAt(
            placeBeside(key),
            editor.selectedNodes().filter((node) => inputRefOf(node)),
          ),
        takeOff,
      },
    }),
    [session, editing, runAgain, composeAt, placeBeside, editor, takeOff],
  );

  const addText = () => {
    const { x, y } = place();
    setEditing(editor.add([{ kind: 'TEXT', text: '', x: Math.round(x), y: Math.round(y) }])[0]);
  };
  const showAll = () => void flow.fitView({ padding: 0.12, maxZoom: 1, duration: 180 });
  const openSelected = () => {
    const [node] = editor.selectedNodes();
    if (node?.kind === 'TEXT') {
      setEditing(node.key);
    } else if (node) {
      document.querySelector<HTMLButtonElement>(`[data-id="${CSS.escape(node.key)}"] [data-play]`)?.click();
    }
  };
  const commands = {
    editor,
    setTool,
    addText,
    pick: () => setPicking(true),
    chooseFiles: () => files.current?.click(),
    compose: () => composeAt(place(), []),
    showAll,
    showSelection: () => {
      const nodes = editor.getSelection().map((id) => ({ id }));
      if (nodes.length > 0) {
        void flow.fitView({ nodes, padding: 0.2, maxZoom: 2, duration: 180 });
      }
    },
    open: openSelected,
    takeOff: () => takeOff(editor.getSelection()),
    frame: () => setEditing(editor.frame(text.section)),
    upload: (list: File[], at: Point) => void uploads.upload(list, at),
    place,
  };
  useBoardKeys(commands, !picking && !renaming && !editing);
  const menu = useBoardMenu(session, board, { rename: () => setRenaming(true), frame: commands.frame });

  const onDragOver = (event: DragEvent) => {
    if (hasDragged(event.dataTransfer) || hasFiles(event.dataTransfer)) {
      event.preventDefault();
      event.dataTransfer.dropEffect = 'copy';
      setDropping(true);
    }
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const dragged = readDragged(event.dataTransfer);
    if (dragged.length > 0) {
      editor.add(
        draftsAround(
          dragged.map(({ kind, id }) => ({ kind, id, item: null })),
          at,
        ),
      );
    } else if (event.dataTransfer.files.length > 0) {
      void uploads.upload([...event.dataTransfer.files], at);
    }
  };

  return (
    <BoardContext value={context}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: things are dropped here; the tools do the same with buttons. */}
      <div
        ref={frame}
        className={styles.board}
        onPointerMove={(event) => {
          // Over a tool the pointer chooses no place.
          const onCanvas = event.target instanceof Element && event.target.closest('.react-flow');
          pointer.current = onCanvas ? { x: event.clientX, y: event.clientY } : undefined;
        }}
        onPointerLeave={() => {
          pointer.current = undefined;
        }}
        onDragOver={onDragOver}
        onDragLeave={() => setDropping(false)}
        onDrop={onDrop}
      >
        <Suspense>
          <NodeList />
        </Suspense>
        <Canvas tool={tool} view={first} onView={(view: Viewport) => keepView(view)} coarse={coarse} />
        <EmptyNote />
        <BoardHead board={board} state={state} onRename={() => setRenaming(true)} />
        <BoardCorner items={menu.items} />
        <Toolbar
          tool={tool}
          onTool={setTool}
          onText={addText}
          onLibrary={commands.pick}
          onUpload={commands.chooseFiles}
          onCreate={commands.compose}
        />
        <ZoomBar onShowAll={showAll} />
        <div className={styles.notes}>
          {uploads.running.map((one) => (
            <div key={one.id} className={styles.note}>
              <span className="small cut">{text.uploading(one.name)}</span>
              <Progress label={text.uploading(one.name)} value={one.part} />
            </div>
          ))}
        </div>
        <div className={classes(styles.drop, dropping && styles.dropping)} aria-hidden={!dropping}>
          {dropping && text.dropHere}
        </div>
        <input
          ref={files}
          type="file"
          multiple
          hidden
          aria-label={text.uploadTool}
          onChange={(event) => {
            void uploads.upload([...(event.target.files ?? [])], middle());
            event.target.value = '';
          }}
        />
        <Suspense>
          <SelectionBar />
          <Minimap />
        </Suspense>
        <Suspense>
          {composing && (
            <Composer
              at={composing.at}
              inputs={composing.inputs}
              onClose={() => setComposing(undefined)}
              onStarted={(id) => {
                addRun(id, composing.place);
                setComposing(undefined);
              }}
            />
          )}
          {picking && (
            <MediaPicker
              many
              title={text.pickTitle}
              takeLabel={text.pickAdd}
              onClose={() => setPicking(false)}
              onTake={(taken) => {
                setPicking(false);
                editor.add(draftsAround(taken, middle()));
              }}
            />
          )}
          {renaming && <RenameDialog board={board} open onClose={() => setRenaming(false)} />}
        </Suspense>
      </div>
    </BoardContext>
  );
}

/** EmptyNote says what to do with an empty board. */
function EmptyNote() {
  const { session } = useBoard();
  const empty = useSyncExternalStore(
    (listener) => session.subscribe(listener),
    () => session.sync.count === 0,
  );

  if (!empty) {
    return null;
  }
  return (
    <div className={styles.empty}>
      <h2>{text.emptyBoardTitle}</h2>
      <p className="soft">{text.emptyBoard}</p>
    </div>
  );
}
