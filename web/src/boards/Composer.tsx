import { useQueries, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { ApiError } from '../api/errors';
import { useAccount } from '../data/account';
import { useTool, useTools } from '../data/catalog';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/boards';
import { Button, ButtonLink, IconButton } from '../ui/Button';
import { Field, Select, TextArea } from '../ui/Field';
import styles from './Composer.module.css';
import { composeInputs, inputRefOf, promptField, takesInputs } from './inputs';
import type { BoardNode, Point } from './model';
import { previewCost, readTool, startRun } from './runs';

type Props = {
  /** Where on the window it opens. */
  at: Point;
  /** Nodes whose files are inputs of the run. */
  inputs: BoardNode[];
  onStarted: (requestId: string) => void;
  onClose: () => void;
};

const draftKey = 'atelier-board-composer';
const readTools = 60;

/** Composer starts a run on the board: a tool, a prompt, and what is selected as the input. */
export function Composer({ at, inputs, onStarted, onClose }: Props) {
  const { teamId, linkTo } = useAccount();
  const saved = useMemo(readDraft, []);
  const refs = useMemo(() => inputs.flatMap((node) => inputRefOf(node) ?? []), [inputs]);
  const tools = useFittingTools(refs.length > 0 ? refs : undefined, teamId);
  const [chosen, setChosen] = useState(saved.toolId);
  const [prompt, setPrompt] = useState(saved.prompt);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID());
  const wait = useCountdown(error);

  const toolId = tools.list.some((tool) => tool.id === chosen) ? chosen : tools.list[0]?.id;
  const tool = useTool(toolId, teamId).data;
  const body = useMemo(() => {
    const values = tool && composeInputs(tool, prompt, refs);
    return tool && values && { tool_id: tool.id, tool_fields_hash: tool.tool_fields_hash, inputs: values };
  }, [tool, prompt, refs]);
  const price = useLatePrice(body, teamId);
  const field = tool && promptField(tool);
  const ready = body && (!field?.required || prompt.trim()) && price?.can_run !== false;

  useEffect(() => {
    localStorage.setItem(draftKey, JSON.stringify({ toolId: chosen, prompt }));
  }, [chosen, prompt]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another request is another run.
  useEffect(() => setIdempotencyKey(crypto.randomUUID()), [body]);

  const start = async () => {
    if (!body || !ready || busy || wait > 0) {
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      onStarted(await startRun(body, teamId, idempotencyKey));
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };

  return (
    <section
      className={styles.composer}
      style={{ left: `clamp(8px, ${at.x}px, calc(100% - 352px))`, top: `clamp(8px, ${at.y}px, calc(100% - 340px))` }}
      aria-label={text.composerTitle}
      onKeyDown={(event) => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          onClose();
        }
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          void start();
        }
      }}
    >
      <header className="row">
        <h2 className="grow">{text.composerTitle}</h2>
        <IconButton small icon="close" label={text.close} onClick={onClose} />
      </header>
      {inputs.length > 0 && (
        <div className={styles.inputs} role="group" aria-label={text.input}>
          {inputs.slice(0, 6).map((node) => (
            <img key={node.key} src={node.item?.thumb_url ?? node.item?.preview_url ?? ''} alt={text.input} />
          ))}
        </div>
      )}
      {tools.ready && tools.list.length === 0 && (
        <p className="small soft">{refs.length > 0 ? text.noToolsForInput : text.noTools}</p>
      )}
      <Field label={text.tool}>
        {(attributes) => (
          <Select {...attributes} value={toolId ?? ''} onChange={(event) => setChosen(event.target.value)}>
            {tools.list.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {(!tool || field) && (
        <Field label={field?.label ?? text.prompt}>
          {(attributes) => (
            <TextArea
              {...attributes}
              autoFocus
              rows={3}
              maxLength={field?.display.max_length}
              placeholder={field?.display.placeholder}
              value={prompt}
              onChange={(event) => setPrompt(event.target.value)}
            />
          )}
        </Field>
      )}
      {tool && !body && <p className="small soft">{text.needsMore}</p>}
      {price && !price.can_run && (
        <p className="small" role="status">
          {price.blocking_reason}
        </p>
      )}
      {error !== undefined && <ErrorFault error={error} />}
      <footer className="row">
        {tool && (
          <ButtonLink small kind="bare" href={linkTo(`/create/${tool.id}`)}>
            {text.openInCreate}
          </ButtonLink>
        )}
        <span className="grow" />
        <Button kind="main" icon="spark" disabled={!ready || busy || wait > 0} onClick={() => void start()}>
          {wait > 0 ? text.wait(wait) : busy ? text.creating : text.create}
          {price && wait === 0 && !busy && <span className="num">· {text.price(price.total_tokens)}</span>}
        </Button>
      </footer>
    </section>
  );
}

function readDraft(): { toolId: string | undefined; prompt: string } {
  try {
    return { toolId: undefined, prompt: '', ...JSON.parse(localStorage.getItem(draftKey) ?? '{}') };
  } catch {
    return { toolId: undefined, prompt: '' };
  }
}

type Refs = Parameters<typeof takesInputs>[1];

/** useFittingTools lists the tools of the account, or with files those that take one of them. */
function useFittingTools(refs: Refs | undefined, teamId: string | undefined) {
  const tools = useTools(teamId);
  const list = tools.data ?? [];
  const details = useQueries({
    queries: (refs ? list.slice(0, readTools) : []).map((tool) => ({
      queryKey: ['tool', tool.id, teamId],
      staleTime: 5 * 60_000,
      queryFn: () => readTool(tool.id, teamId),
    })),
  });

  if (!refs) {
    return { list, ready: !tools.isPending };
  }
  const fitting = new Set(details.flatMap(({ data }) => (data && takesInputs(data, refs) ? [data.id] : [])));
  return {
    list: list.filter((tool) => fitting.has(tool.id)),
    ready: !tools.isPending && details.every((detail) => !detail.isPending),
  };
}

/** useLatePrice asks for the price once typing has stopped for a moment. */
function useLatePrice(body: Parameters<typeof previewCost>[0] | undefined, teamId: string | undefined) {
  const [late, setLate] = useState(body);
  useEffect(() => {
    const timer = setTimeout(() => setLate(body), 350);
    return () => clearTimeout(timer);
  }, [body]);

  const price = useQuery({
    queryKey: ['board-price', late, teamId],
    enabled: late !== undefined,
    gcTime: 0,
    retry: false,
    queryFn: ({ signal }) => (late ? previewCost(late, teamId, signal) : undefined),
  });
  return late === body ? price.data : undefined;
}

/** useCountdown counts the seconds down that the service asks to wait. */
function useCountdown(error: unknown): number {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const seconds = error instanceof ApiError && error.status === 429 ? (error.retryAfter ?? 0) : 0;
    setLeft(seconds);
    if (seconds === 0) {
      return;
    }
    const timer = setInterval(() => setLeft((before) => Math.max(0, before - 1)), 1000);
    return () => clearInterval(timer);
  }, [error]);

  return left;
}
