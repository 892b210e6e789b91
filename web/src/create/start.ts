import { useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import { api, type Schemas } from '../api/client';
import { useAccount } from '../data/account';
import type { ToolDetail } from '../data/catalog';
import { addStartedRun, type Run } from '../data/runs';
import { type Inputs, leavesOf } from '../form/fields';
import { beginAttempt, endAttempt } from './attempts';

/** StartRequest is a run that a person wants. */
export type StartRequest = {
  tool: ToolDetail;
  inputs: Inputs;
  /** The number of results; ignored for tools that always make one. */
  count: number;
  /** The price that was shown, for the card of the run until the service tells. */
  tokens?: number;
};

export type Started = { run: Run; replayed: boolean };

/** bodyOf writes the request of a run as the API wants it. */
export function bodyOf({ tool, inputs, count }: StartRequest): Schemas['CreateGenerationRequest'] {
  return {
    tool_id: tool.id,
    tool_fields_hash: tool.tool_fields_hash,
    inputs,
    ...(tool.num_results ? { num_results: count } : {}),
    plugin: 'studio',
  };
}

/** useStart returns a function that starts a run. A request whose answer was lost starts no second run when repeated. */
export function useStart(): (request: StartRequest) => Promise<Started> {
  const cache = useQueryClient();
  const { me, teamId } = useAccount();
  const { uid } = me.user;

  return useCallback(
    async (request) => {
      const body = bodyOf(request);
      const key = beginAttempt(JSON.stringify([teamId, body]));
      const { data, response } = await api.POST('/generate', {
        params: { query: { team_id: teamId }, header: { 'Idempotency-Key': key } },
        body,
      });
      endAttempt();

      const accepted = data as Schemas['GenerationCreated'];
      const run = runOf(request, accepted, uid, teamId);
      addStartedRun(cache, teamId, run);
      return { run, replayed: response.headers.get('Idempotent-Replayed') === 'true' };
    },
    [cache, uid, teamId],
  );
}

/** runOf is an accepted run as far as it is known before its first event. */
function runOf(
  { tool, inputs, count, tokens = 0 }: StartRequest,
  accepted: Schemas['GenerationCreated'],
  uid: string,
  teamId: string | undefined,
): Run {
  const fields = leavesOf(tool.fields);
  const prompt = fields.find((field) => field.type === 'PROMPT');
  const seed = fields.find((field) => field.type === 'SEED');
  const textOf = (key: string | undefined) =>
    typeof inputs[key ?? ''] === 'string' ? String(inputs[key ?? '']) : null;

  return {
    request_id: accepted.request_id,
    status: 'pending',
    stage: 'queued',
    progress: null,
    queue_position: null,
    retry_after_seconds: accepted.retry_after_seconds,
    estimated_seconds: accepted.estimated_seconds,
    created: accepted.created,
    started: null,
    finished: null,
    tool_id: tool.id,
    tool_name: tool.name,
    uid,
    prompt: textOf(prompt?.fieldKey),
    inputs,
    team_id: teamId ?? null,
    num_results: tool.num_results ? count : 1,
    seed: Number(inputs[seed?.fieldKey ?? ''] ?? 0),
    tokens_held: tokens,
    tokens_charged: 0,
    free_allowance_used: 0,
    outputs: [],
    error: null,
    metadata: null,
    webhook: null,
  };
}
