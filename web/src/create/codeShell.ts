import { isMedia, isSize } from '../form/fields';
import { type Call, teamQuery, wellFormed } from './call';

/** quoteShell quotes a text for a POSIX shell; plain words stay as they are. */
export function quoteShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** writeCurl writes a run as a command of curl. */
export function writeCurl(call: Call): string {
  const body = {
    tool_id: call.toolId,
    tool_fields_hash: call.hash,
    inputs: wellFormed(call.inputs),
    ...(call.count === undefined ? {} : { num_results: call.count }),
  };

  return [
    `curl -sS ${quoteShell(`${call.service}/api/v2/generate${teamQuery(call)}`)} \\`,
    '  -H "Authorization: Bearer $ATELIER_TOKEN" \\',
    "  -H 'Content-Type: application/json' \\",
    '  -H "Idempotency-Key: $(date +%s)-$$" \\',
    `  -d ${quoteShell(JSON.stringify(body, null, 2))}`,
    '',
    '# The answer has a status_url. Read it with the same token until its status is no longer pending.',
    '',
  ].join('\n');
}

/** writeShell writes a run as a command of atelier. */
export function writeShell(call: Call): string {
  const words = ['atelier', 'generate', call.slug];
  for (const [key, value] of Object.entries(call.inputs)) {
    words.push(quoteShell(`${key}=${argumentOf(wellFormed(value))}`));
  }
  if (call.count !== undefined) {
    words.push('--results', String(call.count));
  }
  if (call.teamId) {
    words.push('--team', quoteShell(call.teamId));
  }
  words.push('--service', quoteShell(call.service));

  return `${words.join(' ')}\n`;
}

function argumentOf(value: unknown): string {
  if (isMedia(value)) {
    return `${value.kind === 'LIBRARY_REF' ? 'result' : 'upload'}:${value.id}`;
  }
  if (isSize(value)) {
    return `${value.width}x${value.height}`;
  }
  return Array.isArray(value) ? value.map(argumentOf).join(',') : String(value);
}
