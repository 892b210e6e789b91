import { Suspense } from 'react';
import { useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { type ToolDetail, useTool } from '../data/catalog';
import type { Run } from '../data/runs';
import { readDraft, setDraftValue } from '../form/drafts';
import { inputsOf, type MediaValue } from '../form/fields';
import { addMedia, fieldFor } from '../form/mediafields';
import { text } from '../text/create';
import { IconButton } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { part } from '../ui/part';
import { callOf } from './call';
import { type Overlay, useCreatePage } from './context';
import { focusResult } from './keys';
import { ResultPanel } from './ResultPanel';
import type { Result } from './results';
import { rememberTool } from './tools';
import { countIn } from './useToolForm';

const ToolPicker = part(() => import('../data/ToolPicker'));
const Viewer = part(() => import('../data/Viewer'));
const Compare = part(() => import('./Compare'));
const CodeSheet = part(() => import('./CodeSheet'));
const PinDialog = part(() => import('../data/PinDialog'));
const UseAsInput = part(() => import('./UseAsInput'));

type Props = {
  overlay: Overlay | undefined;
  tool: ToolDetail | undefined;
  results: Result[];
  onChooseTool: (toolId: string) => void;
  onClose: () => void;
  onOpen: (overlay: Overlay) => void;
};

/** Overlays is whatever is open over the page; each part is loaded when it is opened. */
export function Overlays(props: Props) {
  return <Suspense>{props.overlay && <Content {...props} overlay={props.overlay} />}</Suspense>;
}

function Content({ overlay, tool, results, onChooseTool, onClose, onOpen }: Props & { overlay: Overlay }) {
  const page = useCreatePage();
  const byId = (id: string) => results.find((result) => result.id === id);

  switch (overlay.kind) {
    case 'tools':
      return <ToolPicker chosen={tool?.id} onChoose={onChooseTool} onClose={onClose} />;
    case 'code':
      return overlay.run ? (
        <RunSheet run={overlay.run} onClose={onClose} />
      ) : (
        tool && <FormSheet tool={tool} onClose={onClose} />
      );
    case 'viewer':
      return (
        <Viewer
          items={results}
          at={results.findIndex((result) => result.id === overlay.id)}
          onMove={(at) => {
            const id = results[at]?.id;
            if (id) {
              page.choose(id);
              onOpen({ kind: 'viewer', id });
            }
          }}
          onClose={() => {
            onClose();
            setTimeout(() => focusResult(overlay.id));
          }}
          labelOf={(item) => byId(item.id)?.label ?? ''}
          actions={(item) => <ViewerActions result={byId(item.id)} />}
        />
      );
    case 'details': {
      const result = byId(overlay.id);
      return (
        result && (
          <Dialog open onClose={onClose} title={text.detailsTitle} kind="dialog">
            <ResultPanel result={result} />
          </Dialog>
        )
      );
    }
    case 'compare': {
      const first = byId(overlay.ids[0]);
      const second = byId(overlay.ids[1]);
      return first && second && <Compare pair={[first, second]} onClose={onClose} />;
    }
    case 'pin':
      return <PinDialog items={[{ ...overlay.result, kind: 'LIBRARY_REF' }]} onClose={onClose} />;
    case 'input':
      return <InputDialog file={overlay.file} onClose={onClose} />;
  }
}

function ViewerActions({ result }: { result: Result | undefined }) {
  const page = useCreatePage();
  if (!result) {
    return null;
  }
  const favourite = page.favourites.has(result.id);

  return (
    <>
      <IconButton
        icon="heart"
        iconFull={favourite}
        on={favourite}
        aria-pressed={favourite}
        label={text.favourite}
        onClick={() => page.setFavourite(result.id, !favourite)}
      />
      <IconButton icon="info" label={text.details} onClick={() => page.open({ kind: 'details', id: result.id })} />
      <IconButton icon="download" label={text.download} onClick={() => page.download(result)} />
    </>
  );
}

function RunSheet({ run, onClose }: { run: Run; onClose: () => void }) {
  const { teamId } = useAccount();
  const tool = useTool(run.tool_id, teamId).data;

  return tool && <CodeSheet call={callOf(tool, run.inputs ?? {}, run.num_results, teamId)} onClose={onClose} />;
}

function FormSheet({ tool, onClose }: { tool: ToolDetail; onClose: () => void }) {
  const { account, teamId } = useAccount();
  const draft = readDraft(account.id, tool.id);
  const call = callOf(tool, inputsOf(tool.fields, draft.values), countIn(tool, draft.count), teamId);

  return <CodeSheet call={call} onClose={onClose} />;
}

function InputDialog({ file, onClose }: { file: MediaValue; onClose: () => void }) {
  const { account, linkTo } = useAccount();
  const [, navigate] = useLocation();

  const putInto = (tool: ToolDetail) => {
    const field = fieldFor(tool.fields, readDraft(account.id, tool.id).values, file.type ?? 'IMG');
    if (field) {
      setDraftValue(account.id, tool.id, field.fieldKey, (before) => addMedia(field, before, file));
    }
    rememberTool(account.id, tool.id);
    onClose();
    navigate(linkTo(`/create/${tool.id}`));
  };

  return <UseAsInput file={file} onUse={putInto} onClose={onClose} />;
}
