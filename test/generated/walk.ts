// Runs two tools with types that openapi-typescript made and openapi-fetch:
// node walk.js URL TOKEN. "schema" is the generated file.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

type Generation = components["schemas"]["Generation"];
type Inputs = components["schemas"]["Inputs"];
type Tool = components["schemas"]["Tool"];

const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: `${url}/api/v2`, headers: { Authorization: `Bearer ${token}` } });

function assert(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Error(message);
}

async function findTool(name: string): Promise<Tool> {
  const { data, error } = await client.GET("/tools");
  assert(error === undefined, JSON.stringify(error));
  const tool = data.data.find((t) => t.name === name);
  assert(tool !== undefined, `no tool ${name}`);
  return tool;
}

async function run(name: string, inputs: Inputs): Promise<Generation> {
  const tool = await findTool(name);
  const detail = await client.GET("/tools/{tool_id}", { params: { path: { tool_id: tool.id } } });
  assert(detail.data !== undefined, JSON.stringify(detail.error));
  for (const node of detail.data.fields) {
    // isField tells the two kinds of node apart.
    assert(node.isField ? node.fieldKey !== "" : node.children.length > 0, "a node of the form is empty");
  }

  const created = await client.POST("/generate", {
    params: { header: { "Idempotency-Key": crypto.randomUUID() } },
    body: { tool_id: tool.id, tool_fields_hash: detail.data.tool_fields_hash, inputs },
  });
  assert(created.data !== undefined, JSON.stringify(created.error));
  const request_id = created.data.request_id;
  let wait = created.data.retry_after_seconds;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    const { data, error } = await client.GET("/generate/{request_id}", { params: { path: { request_id } } });
    assert(error === undefined, JSON.stringify(error));
    if (data.status !== "pending") return data;
    wait = data.retry_after_seconds;
  }
}

async function download(record: Generation): Promise<Uint8Array<ArrayBuffer>> {
  assert(record.status === "succeeded", `the run is ${record.status}: ${record.error?.message}`);
  const output = record.outputs[0];
  assert(output !== undefined && output.url !== null, "no result");
  const answer = await fetch(output.url);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const hex = Array.from(digest, (b) => b.toString(16).padStart(2, "0")).join("");
  assert(hex === output.sha256, "the file is not what the record says");
  return bytes;
}

const picture = await download(await run("Gradient", { style: "radial", size: { width: 64, height: 48 } }));

const form = new FormData();
form.append("file", new Blob([picture], { type: "image/png" }), "gradient.png");
const upload = await client.POST("/uploads", {
  body: { file: "" },
  bodySerializer: () => form,
});
assert(upload.data !== undefined, JSON.stringify(upload.error));
const small = await run("Resize", {
  picture: { kind: "UPLOAD_REF", id: upload.data.id },
  size: { width: 32, height: 24 },
});
await download(small);
assert(small.outputs[0]?.width === 32, "the picture is not resized");

const missing = await client.GET("/generate/{request_id}", {
  params: { path: { request_id: "00000000-0000-4000-8000-000000000000" } },
});
assert(missing.error?.error.code === "NOT_FOUND", JSON.stringify(missing));
