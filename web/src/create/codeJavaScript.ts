import { type Call, jsonOf, teamQuery, wellFormed } from './call';

/** writeJavaScript writes a run as a program for Node. */
export function writeJavaScript(call: Call): string {
  const count = call.count === undefined ? '' : `    num_results: ${call.count},\n`;
  const inputs = JSON.stringify(wellFormed(call.inputs), null, 2).replaceAll('\n', '\n    ');

  return `// Node 20 or newer, as an ES module (.mjs).
const api = ${jsonOf(`${call.service}/api/v2`)};
const team = ${jsonOf(teamQuery(call))};

async function call(method, path, body) {
  const response = await fetch(api + path + team, {
    method,
    headers: {
      Authorization: \`Bearer \${process.env.ATELIER_TOKEN}\`,
      'Content-Type': 'application/json',
      'Idempotency-Key': crypto.randomUUID(),
    },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) {
    throw new Error(answer.error.message);
  }
  return answer;
}

const tool = await call('GET', '/tools/${call.toolId}');
let run = await call('POST', '/generate', {
    tool_id: tool.id,
    tool_fields_hash: tool.tool_fields_hash,
    inputs: ${inputs},
${count}});
while (run.status === 'pending') {
  await new Promise((resolve) => setTimeout(resolve, run.retry_after_seconds * 1000));
  run = await call('GET', \`/generate/\${run.request_id}\`);
}

console.log(run.status, run.error ?? '');
for (const output of run.outputs) {
  console.log(output.url);
}
`;
}
