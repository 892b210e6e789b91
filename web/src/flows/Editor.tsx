import { ReactFlowProvider } from '@xyflow/react';
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import type { Flow } from '../data/flows';
import { useLeaveGuard } from '../data/leaving';
import { usePreferences } from '../data/preferences';
import { text } from '../text/flows';
import { Confirm } from '../ui/Dialog';
import { isTyping, useKeys } from '../ui/keys';
import { Notice } from '../ui/Notice';
import { part } from '../ui/part';
import { useMedia } from '../ui/screen';
import { useToast } from '../ui/Toast';
import { ConflictDialog } from './ConflictDialog';
import { type FlowEditor, FlowEditorContext } from './context';
import styles from './Editor.module.css';
import { EditorHead } from './EditorHead';
import { addStep, renameStep } from './edit';
import { FlowCanvas } from './FlowCanvas';
import { formId, type Place } from './layout';
import type { FlowDraft } from './model';
import { SidePanel } from './SidePanel';
import { useCheck } from './useCheck';
import { useEdits } from './useEdits';
import { useFlowRun } from './useFlowRun';
import { useSaving } from './useSaving';
import { useToolsOf } from './useToolsOf';
import { VersionsDialog } from './VersionsDialog';

const ToolPicker = part(() => import('../data/ToolPicker'));
const RunPart = part(() => import('./RunPart'));

type Props = { first: FlowDraft; flow: Flow | undefined; onSavedAs: (id: string) => void };
type Overlay = { kind: 'tools' | 'versions' } | { kind: 'part'; id: string };

/** Editor changes a flow: on the canvas, in the panel beside it, and with keys; the service checks it meanwhile. */
export function Editor({ first, flow, onSavedAs }: Props) {
  const { teamId, linkTo } = useAccount();
  const { letterKeys } = usePreferences();
  const toast = useToast();
  const [, navigate] = useLocation();
  const catalog = useTools(teamId);
  const small = useMedia('(max-width: 700px)');
  const edits = useEdits(first);
  const { draft, change } = edits;
  const saving = useSaving(draft, flow, onSavedAs);
  const tools = useToolsOf(draft.steps);
  const check = useCheck(draft, teamId);
  const [parts, setParts] = useState<string[]>([]);
  const run = useFlowRun(saving.flow?.id, parts);
  const [chosen, select] = useState<string>();
  const [overlay, setOverlay] = useState<Overlay>();
  const [leaving, setLeaving] = useState<() => void>();
  const places = useRef(new Map<string, Place>());
  const selected = chosen === formId || draft.steps.some((step) => step.id === chosen) ? chosen : undefined;

  const goes = useRef(false);
  const ask = useCallback((go: () => void) => (goes.current ? go() : setLeaving(() => go)), []);
  useLeaveGuard(saving.dirty, ask);
  useTitle(draft.name || text.untitled);

  const rename = useCallback(
    (from: string, to: string) => {
      const place = places.current.get(from);
      if (place) {
        places.current.set(to, place);
      }
      change((before) => renameStep(before, from, to));
      select(to);
    },
    [change],
  );
  const add = (toolId: string) => {
    const tool = catalog.data?.find((one) => one.id === toolId);
    setOverlay(undefined);
    if (tool) {
      const added = addStep(draft, tool);
      change(() => added.draft);
      select(added.id);
    }
  };

  const save = async () => {
    if (saving.busy) {
      return undefined;
    }
    // What another team shares can only be changed as a copy.
    return saving.foreign ? saveCopy() : passUnguarded(saving.save);
  };
  // The editor's own change of the address is no reason to ask.
  const passUnguarded = async <T,>(act: () => Promise<T>): Promise<T> => {
    goes.current = true;
    try {
      return await act();
    } finally {
      goes.current = false;
    }
  };
  const saveCopy = async () => {
    const saved = await passUnguarded(saving.saveCopy);
    if (saved) {
      change((before) => ({ ...before, name: saved.name, shared: saved.shared }));
    }
    return saved;
  };
  const runFlow = async () => {
    const saved = saving.flow && !saving.dirty ? saving.flow : await save();
    if (saved) {
      await passUnguarded(async () => navigate(linkTo(`/create/${saved.id}`)));
    }
  };
  const loadTheirs = async () => {
    const theirs = await saving.readTheirs();
    if (theirs) {
      change(() => theirs);
      toast({ text: text.loadedTheirs });
    }
  };

  const outside = (act: () => void) => (event: KeyboardEvent) => {
    if (!isTyping(event.target)) {
      act();
    }
  };
  useKeys(
    {
      'Ctrl+s': () => void save(),
      'Ctrl+z': outside(edits.undo),
      'Ctrl+Shift+z': outside(edits.redo),
      'Ctrl+y': outside(edits.redo),
      a: () => setOverlay({ kind: 'tools' }),
    },
    { letters: letterKeys, enabled: overlay === undefined && !leaving },
  );

  const editor = useMemo<FlowEditor>(
    () => ({
      draft,
      tools,
      check,
      run,
      selected,
      select,
      change,
      rename,
      runPart: (id) => setOverlay({ kind: 'part', id }),
      addStep: () => setOverlay({ kind: 'tools' }),
    }),
    [draft, tools, check, run, selected, change, rename],
  );

  return (
    <FlowEditorContext value={editor}>
      <div className={styles.editor}>
        <EditorHead
          edits={edits}
          saving={saving}
          onSave={() => void save()}
          onSaveCopy={() => void saveCopy()}
          onRun={() => void runFlow()}
          onVersions={() => setOverlay({ kind: 'versions' })}
        />
        {small ? (
          <div className={styles.small}>
            {selected === undefined && <Notice>{text.small}</Notice>}
            <SidePanel saving={saving} />
          </div>
        ) : (
          <div className={styles.table}>
            <ReactFlowProvider>
              <FlowCanvas places={places.current} />
            </ReactFlowProvider>
            <SidePanel saving={saving} />
          </div>
        )}
      </div>
      <Suspense>
        {overlay?.kind === 'tools' && (
          <ToolPicker chosen={undefined} onChoose={add} onClose={() => setOverlay(undefined)} />
        )}
        {overlay?.kind === 'part' && (
          <RunPart
            id={overlay.id}
            onStarted={(requestId) => setParts((before) => [...before, requestId])}
            onClose={() => setOverlay(undefined)}
          />
        )}
      </Suspense>
      {overlay?.kind === 'versions' && saving.flow && (
        <VersionsDialog
          flow={saving.flow}
          onRestore={(version, restored) => {
            change(() => ({ ...restored, shared: draft.shared }));
            setOverlay(undefined);
            toast({ text: text.restored(version) });
          }}
          onClose={() => setOverlay(undefined)}
        />
      )}
      <ConflictDialog
        open={saving.conflict}
        onLoad={() => void loadTheirs()}
        onCopy={() => void saveCopy()}
        onClose={saving.closeConflict}
      />
      <Confirm
        open={leaving !== undefined}
        title={text.leaveTitle}
        action={text.leave}
        danger
        onConfirm={() => leaving?.()}
        onClose={() => setLeaving(undefined)}
      >
        <p>{text.leaveText}</p>
      </Confirm>
    </FlowEditorContext>
  );
}

/** useTitle names the page while it is shown. */
function useTitle(name: string): void {
  useEffect(() => {
    const before = document.title;
    document.title = `${name} · Atelier`;
    return () => {
      document.title = before;
    };
  }, [name]);
}
