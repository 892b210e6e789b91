import type { Tool } from './catalog';

/** filterTools returns the tools that match all words and have all tags. */
export function filterTools(tools: readonly Tool[], query: string, tagIds: readonly string[]): Tool[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);

  return tools.filter((tool) => {
    const tags = tool.tool_tags.map((tag) => tag.label).join(' ');
    const about = `${tool.name} ${tool.slug} ${tool.description ?? ''} ${tags}`.toLowerCase();
    const tagged = tagIds.every((id) => tool.tool_tags.some((tag) => tag.id === id));
    return tagged && words.every((word) => about.includes(word));
  });
}

/** tagsOf returns the tags of some tools, those of media first, then the most common ones. */
export function tagsOf(tools: readonly Tool[]): Tool['tool_tags'] {
  const counts = new Map<string, { tag: Tool['tool_tags'][number]; count: number }>();
  for (const tag of tools.flatMap((tool) => tool.tool_tags)) {
    const known = counts.get(tag.id);
    counts.set(tag.id, { tag, count: (known?.count ?? 0) + 1 });
  }
  const rank = (type: string) => (type === 'MEDIA' ? 0 : 1);

  return [...counts.values()]
    .filter(({ count }) => count < tools.length || tools.length === 1)
    .sort((one, other) => rank(one.tag.type) - rank(other.tag.type) || other.count - one.count)
    .slice(0, 14)
    .map(({ tag }) => tag);
}
