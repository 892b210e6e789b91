import type { Schemas } from '../api/client';
import type { ToolDetail } from '../data/catalog';
import type { Inputs } from '../form/fields';

/** Call is a run as code starts it. */
export type Call = {
  /** The address of the service, without a slash at its end. */
  service: string;
  toolId: string;
  /** The tool's name in commands. */
  slug: string;
  hash: string;
  inputs: Schemas['Inputs'];
  /** The number of results; undefined for tools that always make one. */
  count: number | undefined;
  teamId: string | undefined;
};

/** callOf is a run of a tool as code starts it, at the service that this page comes from. */
export function callOf(tool: ToolDetail, inputs: Inputs, count: number, teamId: string | undefined): Call {
  return {
    service: location.origin,
    toolId: tool.id,
    slug: tool.slug,
    hash: tool.tool_fields_hash,
    inputs,
    count: tool.num_results ? count : undefined,
    teamId,
  };
}

/** teamQuery is the part of an address that names the team that a run is made for. */
export const teamQuery = (call: Call) => (call.teamId ? `?team_id=${encodeURIComponent(call.teamId)}` : '');

/** jsonOf writes a value as JSON, which is also how Python, JavaScript and Go write texts and numbers. */
export const jsonOf = (value: unknown) => JSON.stringify(wellFormed(value));

/** wellFormed replaces halves of characters, which no language accepts in a text. */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd');
  }
  if (Array.isArray(value)) {
    return value.map(wellFormed);
  }
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, wellFormed(one)]));
  }
  return value;
}
