import { api, dataOf, type Schemas } from '../api/client';
import type { ToolDetail } from '../data/catalog';
import { changeSeed } from './inputs';

type RunRequest = { tool_id: string; tool_fields_hash: string; inputs: Record<string, unknown> };

const bodyOf = (request: RunRequest) => request as Schemas['CreateGenerationRequest'];

/** previewCost asks what a run costs and whether it can start. */
export async function previewCost(request: RunRequest, teamId: string | undefined, signal: AbortSignal) {
  const params = { query: { team_id: teamId } };

  return dataOf(await api.POST('/generate/preview-cost', { params, body: bodyOf(request), signal }));
}

/** startRun starts a run, and returns its id. The key keeps a repeated request from starting a second one. */
export async function startRun(request: RunRequest, teamId: string | undefined, key: string): Promise<string> {
  const params = { query: { team_id: teamId }, header: { 'Idempotency-Key': key } };
  const made = dataOf(await api.POST('/generate', { params, body: bodyOf(request) }));

  return made.request_id;
}

/** readTool reads one tool with its form. */
export async function readTool(toolId: string, teamId: string | undefined): Promise<ToolDetail> {
  const params = { path: { tool_id: toolId }, query: { team_id: teamId } };

  return dataOf(await api.GET('/tools/{tool_id}', { params }));
}

/** repeatResult starts the run of a result once more with another seed, and returns its id. */
export async function repeatResult(libraryId: string, teamId: string | undefined, key: string): Promise<string> {
  const params = { path: { library_id: libraryId }, query: { team_id: teamId } };
  const item = dataOf(await api.GET('/library/{library_id}', { params }));

  return repeat(item.tool_id, item.inputs, teamId, key);
}

/** repeatRun starts a run once more with another seed, and returns its id. */
export async function repeatRun(requestId: string, teamId: string | undefined, key: string): Promise<string> {
  const params = { path: { request_id: requestId }, query: { team_id: teamId, include: 'inputs' as const } };
  const run = dataOf(await api.GET('/generate/{request_id}', { params }));

  return repeat(run.tool_id, run.inputs ?? {}, teamId, key);
}

async function repeat(
  toolId: string,
  inputs: Record<string, unknown>,
  teamId: string | undefined,
  key: string,
): Promise<string> {
  const tool = await readTool(toolId, teamId);
  const request = { tool_id: tool.id, tool_fields_hash: tool.tool_fields_hash, inputs: changeSeed(inputs, tool) };

  return startRun(request, teamId, key);
}
