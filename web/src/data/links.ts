import { addressOf } from '../routes';

/** inputLink is the address of Create with a result or an upload as the input of the chosen tool: `?input=LIBRARY_REF:<id>`. The id may hold colons; the kind ends at the first one. */
export function inputLink(kind: 'LIBRARY_REF' | 'UPLOAD_REF', id: string, teamId: string | undefined): string {
  return addressOf('/', { input: `${kind}:${id}`, team: teamId });
}

/** readInputLink returns the kind and the id of the parameter `input`, or undefined if it names none. */
export function readInputLink(input: string | null): { kind: 'LIBRARY_REF' | 'UPLOAD_REF'; id: string } | undefined {
  const colon = input?.indexOf(':') ?? -1;
  const kind = input?.slice(0, colon);
  const id = input?.slice(colon + 1);

  return (kind === 'LIBRARY_REF' || kind === 'UPLOAD_REF') && id ? { kind, id } : undefined;
}

/** runAgainLink is the address of Create with the tool and the inputs of a run: `?from=<request_id>`. */
export function runAgainLink(toolId: string, requestId: string, teamId: string | undefined): string {
  return addressOf(`/create/${encodeURIComponent(toolId)}`, { from: requestId, team: teamId });
}

/** resultLink is the address of a result in the library. */
export function resultLink(id: string, teamId: string | undefined): string {
  return addressOf(`/library/${encodeURIComponent(id)}`, { team: teamId });
}

/** readResultId returns the id of a result from its part of an address, in which the colon is encoded. */
export function readResultId(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
