import { api, dataOf } from '../api/client';
import { ApiError, isOffline } from '../api/errors';
import { type Changes, type Failure, SyncError, type Transport } from './exchange';
import type { BoardSummary, ServerNode } from './model';

/** readBoard reads a board with all of its nodes, and the revision of the first page, from which its events are followed. */
export async function readBoard(
  boardId: string,
  teamId: string | undefined,
): Promise<{ board: BoardSummary; nodes: ServerNode[]; revision: number }> {
  const nodes: ServerNode[] = [];
  let board: BoardSummary | undefined;
  let cursor: string | undefined;
  do {
    const params = { path: { board_id: boardId }, query: { team_id: teamId, cursor } };
    const {
      nodes: page,
      next_cursor,
      has_more: _more,
      ...summary
    } = dataOf(await api.GET('/boards/{board_id}', { params }));
    board ??= summary;
    nodes.push(...page);
    cursor = next_cursor ?? undefined;
  } while (cursor);

  return { board, nodes, revision: board.revision };
}

/** boardTransport calls the service for the nodes of a board. */
export function boardTransport(boardId: string, teamId: string | undefined): Transport {
  return {
    read: () => readBoard(boardId, teamId).catch(throwFailure),
    change: async (changes, ifMatch) => {
      const header = ifMatch === undefined ? {} : { 'If-Match': `"${ifMatch}"` };
      const params = { path: { board_id: boardId }, query: { team_id: teamId }, header };
      const answer = await api.PATCH('/boards/{board_id}/nodes', { params, body: changes }).catch(throwFailure);
      return dataOf(answer);
    },
  };
}

function throwFailure(error: unknown): never {
  throw new SyncError(failureOf(error));
}

/** failureOf tells what an error of the service means for the changes that were sent. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof ApiError) || isOffline(error)) {
    return { kind: 'away', retryAfter: error instanceof ApiError ? error.retryAfter : undefined };
  }
  switch (error.status) {
    case 412:
      return { kind: 'stale', revision: Number((error.body.details as { revision?: number }).revision ?? 0) };
    case 404:
      return { kind: 'gone', message: error.message };
    case 401:
    case 403:
      return { kind: 'refused', message: error.message };
    case 400:
    case 413:
    case 415:
      return { kind: 'invalid', fields: error.fields, message: error.message };
    default:
      return { kind: 'away', retryAfter: error.retryAfter };
  }
}

/** sendLast sends the last changes of a page that closes; the browser finishes the request by itself. */
export function sendLast(boardId: string, teamId: string | undefined, changes: Changes): void {
  const params = { path: { board_id: boardId }, query: { team_id: teamId } };
  void api.PATCH('/boards/{board_id}/nodes', { params, body: changes, keepalive: true }).catch(() => undefined);
}
