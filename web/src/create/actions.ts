import { useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { api, dataOf } from '../api/client';
import { ApiError, isOffline } from '../api/errors';
import { useAccount } from '../data/account';
import { type ToolDetail, toolQuery } from '../data/catalog';
import { messageOf } from '../data/ErrorFault';
import { changeOutput, putRun, type Run } from '../data/runs';
import { carryOver } from '../form/check';
import { changeDraft } from '../form/drafts';
import { type Inputs, leavesOf } from '../form/fields';
import { text } from '../text/create';
import { useToast } from '../ui/Toast';
import { fileName, type Result } from './results';
import { useStart } from './start';
import { rememberTool } from './tools';
import { countIn } from './useToolForm';

/** Actions are what can be done with runs and their results. */
export type Actions = {
  cancel: (run: Run) => void;
  /** Starts the run again with the same inputs and another seed. */
  newSeed: (run: Run) => void;
  /** Starts the run again as it was. */
  runAgain: (run: Run) => void;
  /** Puts the inputs of the run into the form of its tool. */
  takeInputs: (run: Run) => void;
  download: (result: Result) => void;
  remove: (result: Result) => void;
};

/** useActions returns what can be done with runs and their results in the account that is acted for. */
export function useActions(): Actions {
  const { account, teamId, linkTo } = useAccount();
  const cache = useQueryClient();
  const toast = useToast();
  const start = useStart();
  const [, navigate] = useLocation();

  return useMemo(() => {
    const attempt = (work: () => Promise<void>) => {
      work().catch((error: unknown) => {
        toast({ text: isOffline(error) ? text.offlineTitle : messageOf(error) });
      });
    };
    const readTool = (toolId: string): Promise<ToolDetail> => cache.fetchQuery(toolQuery(toolId, teamId));
    const readInputs = async (run: Run): Promise<Inputs> => {
      if (run.inputs) {
        return run.inputs;
      }
      const params = { path: { request_id: run.request_id }, query: { team_id: teamId, include: 'inputs' as const } };
      return dataOf(await api.GET('/generate/{request_id}', { params })).inputs ?? {};
    };

    const takeInputs = async (run: Run) => {
      const [tool, inputs] = await Promise.all([readTool(run.tool_id), readInputs(run)]);
      const { values, dropped } = carryOver(tool.fields, inputs);
      const draft = { values, count: countIn(tool, run.num_results), hash: tool.tool_fields_hash };
      changeDraft(account.id, tool.id, () => draft);
      rememberTool(account.id, tool.id);
      navigate(linkTo(`/create/${tool.id}`));
      toast({ text: dropped.length > 0 ? text.usedSome(dropped.join(', ')) : text.usedInputs(tool.name), seconds: 4 });
    };

    const repeat = async (run: Run, fresh: boolean) => {
      const [tool, inputs] = await Promise.all([readTool(run.tool_id), readInputs(run)]);
      const seeds = leavesOf(tool.fields).filter((field) => field.type === 'SEED');
      const kept = Object.entries(inputs).filter(([key]) => !fresh || !seeds.some((field) => field.fieldKey === key));
      try {
        await start({
          tool,
          inputs: Object.fromEntries(kept),
          count: countIn(tool, run.num_results),
          tokens: run.tokens_charged,
        });
      } catch (error) {
        if (error instanceof ApiError && (error.status === 409 || error.status === 400)) {
          await cache.invalidateQueries({ queryKey: ['tool', run.tool_id] });
          await takeInputs(run);
        }
        throw error;
      }
    };

    const remove = async (result: Result) => {
      const params = { path: { library_id: result.id }, query: { team_id: teamId } };
      changeOutput(cache, teamId, result.id, { expired: true });
      try {
        await api.DELETE('/library/{library_id}', { params });
      } catch (error) {
        changeOutput(cache, teamId, result.id, { expired: false });
        throw error;
      }
      void cache.invalidateQueries({ queryKey: ['library'] });

      const restore = async () => {
        await api.POST('/library/{library_id}/restore', { params });
        changeOutput(cache, teamId, result.id, { expired: false });
        void cache.invalidateQueries({ queryKey: ['library'] });
        toast({ text: text.restored, seconds: 3 });
      };
      toast({ text: text.deleted, action: { label: text.undo, key: 'Z', run: () => attempt(restore) } });
    };

    const cancel = async (run: Run) => {
      const params = { path: { request_id: run.request_id }, query: { team_id: teamId } };
      putRun(cache, teamId, dataOf(await api.POST('/generate/{request_id}/cancel', { params })));
    };

    return {
      cancel: (run) => attempt(() => cancel(run)),
      newSeed: (run) => attempt(() => repeat(run, true)),
      runAgain: (run) => attempt(() => repeat(run, false)),
      takeInputs: (run) => attempt(() => takeInputs(run)),
      download: (result) => attempt(() => download(result)),
      remove: (result) => attempt(() => remove(result)),
    };
  }, [account.id, teamId, linkTo, cache, toast, start, navigate]);
}

/** download saves a result as a file. The bytes are fetched, since media may come from another host. */
async function download(result: Result): Promise<void> {
  if (!result.url) {
    return;
  }
  const response = await fetch(result.url);
  if (!response.ok) {
    throw new TypeError(`The file was answered with ${response.status}.`);
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = fileName(result);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
