import type { ToolDetail } from '../data/catalog';
import { isEmpty, type Leaf, leavesOf, type Value } from '../form/fields';
import { text } from '../text/create';

/** Suggestion is a run that a new person can start with one click. */
export type Suggestion = { tool: ToolDetail; title: string; inputs: Record<string, string> };

const promptTypes = ['PROMPT', 'TEXT_AREA', 'TEXT'];

/** neededOf returns the fields that a run must have a value for and that have none by default. */
function neededOf(tool: ToolDetail): Leaf[] {
  return leavesOf(tool.fields).filter((field) => field.required && isEmpty(field.defaultValue as Value));
}

/** promptOf returns the one field of a tool that must be written, if a text is all that the tool needs. */
function promptOf(tool: ToolDetail): Leaf | undefined {
  const needed = neededOf(tool);
  const [field] = needed;

  return needed.length === 1 && field && promptTypes.includes(field.type) ? field : undefined;
}

function suggest(tool: ToolDetail, at: number): Suggestion | undefined {
  const field = promptOf(tool) ?? (neededOf(tool).length === 0 ? optionalPromptOf(tool) : undefined);
  if (field) {
    const own = text.prompts[tool.output.type];
    const prompt = at === 0 && field.display.placeholder ? field.display.placeholder : own[at % own.length];
    const fitting = prompt && (!field.display.max_length || [...prompt].length <= field.display.max_length);
    return fitting ? { tool, title: prompt, inputs: { [field.fieldKey]: prompt } } : undefined;
  }
  return neededOf(tool).length === 0 && at === 0 ? { tool, title: shortTitle(tool), inputs: {} } : undefined;
}

function optionalPromptOf(tool: ToolDetail): Leaf | undefined {
  return leavesOf(tool.fields).find((field) => field.type === 'PROMPT');
}

/** shortTitle is the first sentence of a tool's description without its full stop, or the tool's name. */
function shortTitle(tool: ToolDetail): string {
  return tool.description?.split(/[.;:]/)[0]?.trim() || tool.name;
}

/**
 * makeSuggestions chooses up to three runs that need nothing but a click, from the tools that the service has: first a
 * picture from a prompt, then other kinds of results, then other tools, then more prompts for the first tool.
 */
export function makeSuggestions(tools: readonly ToolDetail[], balance: number, most = 3): Suggestion[] {
  const affordable = tools.filter((tool) => tool.tokens_per_result <= balance);
  const usable = affordable.filter((tool) => suggest(tool, 0));
  const written = usable.filter((tool) => promptOf(tool));
  const first = written.find((tool) => tool.output.type === 'IMG') ?? written[0] ?? usable[0];
  if (!first) {
    return [];
  }

  const chosen = [first];
  const kinds = new Set<string>([first.output.type]);
  for (const tool of [...written, ...usable]) {
    if (!kinds.has(tool.output.type) && chosen.length < most) {
      kinds.add(tool.output.type);
      chosen.push(tool);
    }
  }
  for (const tool of usable) {
    if (!chosen.includes(tool) && chosen.length < most) {
      chosen.push(tool);
    }
  }

  const order = [...chosen].sort((one, other) => tools.indexOf(one) - tools.indexOf(other));
  const suggestions = [first, ...order.filter((tool) => tool !== first)].map((tool) => suggest(tool, 0));
  for (let at = 1; suggestions.length < most && at < most; at++) {
    suggestions.push(suggest(first, at));
  }

  return suggestions.filter((one) => one !== undefined);
}
