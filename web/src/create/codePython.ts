import { type Call, jsonOf, teamQuery, wellFormed } from './call';

/** writePython writes a run as a Python program that needs no package. */
export function writePython(call: Call): string {
  const count = call.count === undefined ? '' : `    "num_results": ${call.count},\n`;

  return `import json
import os
import time
import urllib.request
import uuid

API = ${jsonOf(`${call.service}/api/v2`)}
TEAM = ${jsonOf(teamQuery(call))}


def call(method, path, body=None):
    request = urllib.request.Request(
        API + path + TEAM,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["ATELIER_TOKEN"],
            "Content-Type": "application/json",
            "Idempotency-Key": str(uuid.uuid4()),
        },
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


tool = call("GET", "/tools/${call.toolId}")
run = call("POST", "/generate", {
    "tool_id": tool["id"],
    "tool_fields_hash": tool["tool_fields_hash"],
    "inputs": ${pythonOf(wellFormed(call.inputs), '    ')},
${count}})
while run["status"] == "pending":
    time.sleep(run["retry_after_seconds"])
    run = call("GET", "/generate/" + run["request_id"])

print(run["status"], run["error"] or "")
for output in run["outputs"]:
    print(output["url"])
`;
}

function pythonOf(value: unknown, indent: string): string {
  if (value === true) {
    return 'True';
  }
  if (value === false) {
    return 'False';
  }
  if (value === null || value === undefined) {
    return 'None';
  }
  if (Array.isArray(value)) {
    return `[${value.map((one) => pythonOf(one, indent)).join(', ')}]`;
  }
  if (typeof value === 'object') {
    return dictionaryOf(value, indent);
  }
  return jsonOf(value);
}

/** dictionaryOf writes an object as a dictionary: on one line if it is short, else with one entry a line. */
function dictionaryOf(value: object, indent: string): string {
  const inner = `${indent}    `;
  const entries = Object.entries(value).map(([key, one]) => `${jsonOf(key)}: ${pythonOf(one, inner)}`);
  const flat = `{${entries.join(', ')}}`;
  if (flat.length < 70 && !flat.includes('\n')) {
    return flat;
  }
  return `{\n${entries.map((entry) => `${inner}${entry},\n`).join('')}${indent}}`;
}
