import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useAccount } from '../data/account';
import { toolQuery, useTools } from '../data/catalog';
import type { Tools } from './graph';
import type { Step } from './model';

/** useToolsOf reads the tools that the steps of a flow name, by slug. */
export function useToolsOf(steps: readonly Step[]): Tools {
  const { teamId } = useAccount();
  const list = useTools(teamId);
  const slugs = [...new Set(steps.map((step) => step.tool))].sort().join(' ');
  const named = useMemo(() => {
    const bySlug = new Map((list.data ?? []).map((tool) => [tool.slug, tool.id]));
    return slugs.split(' ').map((slug) => ({ slug, id: bySlug.get(slug) }));
  }, [slugs, list.data]);
  const known = useMemo(() => named.filter((one) => one.id !== undefined), [named]);

  const details = useQueries({
    queries: known.map(({ id }) => toolQuery(id ?? '', teamId)),
    combine: (results) => results.map((result) => result.data),
  });
  const read = list.isSuccess;

  return useMemo(() => {
    const tools = new Map<string, NonNullable<(typeof details)[number]> | null>();
    for (const { slug, id } of named) {
      if (id === undefined && read) {
        tools.set(slug, null);
      }
    }
    known.forEach(({ slug }, at) => {
      const tool = details[at];
      if (tool) {
        tools.set(slug, tool);
      }
    });
    return tools;
  }, [named, known, details, read]);
}
