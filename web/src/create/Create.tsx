import { useCallback, useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { type ToolDetail, useKits, useTool, useTools } from '../data/catalog';
import { ErrorFault } from '../data/ErrorFault';
import { readDraft, setDraftValue } from '../form/drafts';
import { addMedia, fieldFor } from '../form/mediafields';
import { text } from '../text/create';
import { Button } from '../ui/Button';
import { Bone, Empty, Waiting } from '../ui/States';
import { useSmallScreen, useWideScreen } from '../ui/screen';
import { useToast } from '../ui/Toast';
import { useActions } from './actions';
import { ChosenResult } from './ChosenResult';
import styles from './Create.module.css';
import { type CreatePage, CreatePageContext, type Overlay } from './context';
import { Feed, type Filter, useFeed } from './Feed';
import { useFavourites } from './favourites';
import { mediaValueOf } from './mediavalue';
import { Overlays } from './Overlays';
import { type Result, resultsOf } from './results';
import { ToolForm } from './ToolForm';
import { recallTool, rememberTool } from './tools';
import { useLinkValues } from './useLinkValues';
import { Welcome } from './Welcome';

/** useChosenTool returns the tool of the address, the last one used, or the one to begin with. */
function useChosenTool(toolId: string | undefined) {
  const { account, teamId } = useAccount();
  const tools = useTools(teamId);
  const kits = useKits(teamId);
  const list = tools.data;

  const remembered = recallTool(account.id);
  const known = (id: string | undefined) => (list?.some((tool) => tool.id === id) ? id : undefined);
  const first = kits.isPending ? undefined : (known(kits.data?.[0]?.default_tool_id) ?? list?.[0]?.id);
  const chosen = toolId ?? (list ? (known(remembered) ?? first) : remembered);

  return { tools, toolId: chosen, tool: useTool(chosen, teamId) };
}

/** Create is the page on which things are made: the form of a tool, and the feed of runs. */
export function Create({ toolId, welcome = false }: { toolId?: string; welcome?: boolean }) {
  const { account, linkTo } = useAccount();
  const [, navigate] = useLocation();
  const small = useSmallScreen();
  const wide = useWideScreen();
  const chosen = useChosenTool(toolId);
  const tool = chosen.tool.data;
  const [filter, setFilter] = useState<Filter>('all');
  const feed = useFeed(filter);
  const [overlay, setOverlay] = useState<Overlay>();
  const page = useCreatePageState(tool, setOverlay);
  useLinkValues(tool, page, (file) => setOverlay({ kind: 'input', file }));

  const results = useMemo(() => feed.runs.flatMap(resultsOf), [feed.runs]);
  const onOpen = useCallback(
    (result: Result) => {
      page.choose(result.id);
      if (page.marked) {
        page.mark(result.id);
      } else if (!wide) {
        setOverlay({ kind: 'viewer', id: result.id });
      }
    },
    [page, wide],
  );
  const chooseTool = (id: string) => {
    rememberTool(account.id, id);
    setOverlay(undefined);
    navigate(linkTo(`/create/${id}`));
  };

  return (
    <CreatePageContext value={page}>
      <div className={styles.page}>
        {tool ? (
          <ToolForm
            key={`${account.id} ${tool.id}`}
            tool={tool}
            small={small}
            onChooseTool={() => setOverlay({ kind: 'tools' })}
          />
        ) : (
          <NoTool chosen={chosen} onChooseTool={() => setOverlay({ kind: 'tools' })} />
        )}
        <Feed feed={feed} filter={filter} onFilter={setFilter} welcome={<Welcome first={welcome} />} onOpen={onOpen} />
        {wide && <ChosenResult results={results} />}
      </div>
      <Overlays
        overlay={overlay}
        tool={tool}
        results={results}
        onChooseTool={chooseTool}
        onClose={() => setOverlay(undefined)}
        onOpen={setOverlay}
      />
    </CreatePageContext>
  );
}

/** useCreatePageState keeps what the parts of the page share. */
function useCreatePageState(tool: ToolDetail | undefined, open: (overlay: Overlay) => void): CreatePage {
  const { account } = useAccount();
  const actions = useActions();
  const toast = useToast();
  const [favourites, setFavourite] = useFavourites();
  const [chosenId, choose] = useState<string>();
  const [marked, setMarked] = useState<string[]>();

  // Every card of the feed uses this: it stays the same object while the form is filled in.
  return useMemo(() => {
    const mark = (id: string) => {
      if (id === '') {
        setMarked(marked ? undefined : []);
        return;
      }
      const others = (marked ?? []).filter((one) => one !== id);
      const [first] = others;
      if (marked?.includes(id)) {
        setMarked(others);
      } else if (first !== undefined) {
        setMarked(undefined);
        open({ kind: 'compare', ids: [first, id] });
      } else {
        setMarked([id]);
        toast({ text: text.comparePick(1), seconds: 4 });
      }
    };
    const takeAsInput = (result: Result) => {
      const field = tool && fieldFor(tool.fields, readDraft(account.id, tool.id).values, result.type, result.mime_type);
      if (!tool || !field) {
        open({ kind: 'input', file: mediaValueOf(result) });
        return;
      }
      setDraftValue(account.id, tool.id, field.fieldKey, (before) => addMedia(field, before, mediaValueOf(result)));
      toast({ text: text.usedAsInput(field.label), seconds: 4 });
    };

    return { ...actions, chosenId, choose, favourites, setFavourite, marked, mark, open, takeAsInput };
  }, [account.id, tool, actions, toast, chosenId, favourites, setFavourite, marked, open]);
}

type NoToolProps = { chosen: ReturnType<typeof useChosenTool>; onChooseTool: () => void };

/** NoTool stands in place of the form while there is none: the tool is being read, is gone, or there are no tools. */
function NoTool({ chosen, onChooseTool }: NoToolProps) {
  const { tools, tool, toolId } = chosen;
  const error = tools.error ?? tool.error;

  return (
    <section className={styles.toolForm} aria-label={text.toolForm}>
      <div className={styles.form}>
        {tools.isSuccess && tools.data.length === 0 && <Empty title={text.noTools}>{text.noToolsHint}</Empty>}
        {error && toolId !== undefined && tools.isSuccess && tools.data.length > 0 && (
          <Empty title={text.toolGone} actions={<Button onClick={onChooseTool}>{text.pickerTitle}</Button>}>
            {text.toolGoneHint}
          </Empty>
        )}
        {error && !tools.isSuccess && (
          <ErrorFault error={error} onRetry={() => void tools.refetch().then(() => tool.refetch())} />
        )}
        {!error && !(tools.isSuccess && tools.data.length === 0) && (
          <Waiting>
            <Bone height={66} />
            <Bone height={120} />
            <Bone height={64} />
            <Bone height={64} />
          </Waiting>
        )}
      </div>
    </section>
  );
}
