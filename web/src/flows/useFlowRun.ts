import { useMemo } from 'react';
import { useAccount } from '../data/account';
import { useConnection } from '../data/live';
import { type Run, useRuns } from '../data/runs';

/** useFlowRun returns the newest run of a flow, or of a part of it that the editor has started. */
export function useFlowRun(flowId: string | undefined, partIds: readonly string[]): Run | undefined {
  const { teamId } = useAccount();
  const connection = useConnection();
  const runs = useRuns(teamId, { poll: !connection.open });

  return useMemo(
    () =>
      runs.data?.pages
        .flatMap((page) => page.data)
        .find((run) => (flowId !== undefined && run.tool_id === flowId) || partIds.includes(run.request_id)),
    [runs.data, flowId, partIds],
  );
}
