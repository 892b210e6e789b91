// Drives servers with fal's own client: node fal.mjs QUEUE STORAGE KEY.
import assert from "node:assert/strict";
import { createFalClient, ApiError, ValidationError } from "@fal-ai/client";

const [queue, storage, credentials] = process.argv.slice(2);
// The client knows its hosts by name; here they are elsewhere.
const there = { "queue.fal.run": queue, "rest.fal.ai": storage };
const elsewhere = (url, init) => {
  const { host, pathname, search } = new URL(url);
  return fetch(there[host] ? there[host] + pathname + search : url, init);
};
const client = (key) => createFalClient({ credentials: key, fetch: elsewhere, retry: { maxRetries: 0 } });
const fal = client(credentials);
const endpoint = "fal-ai/painter/dev";

// A run as the client does it: submit, poll, result.
const seen = [];
const { data, requestId } = await fal.subscribe(endpoint, {
  input: { prompt: "a fox", num_images: 2 }, logs: true, pollInterval: 10, startTimeout: 30,
  onQueueUpdate: (update) => seen.push(update),
});
assert.equal(data.images.length, 2);
assert.ok(seen.some((s) => s.status === "IN_PROGRESS"));
assert.equal(seen.at(-1).status, "COMPLETED");
assert.equal(seen.at(-1).request_id, requestId);
assert.ok(seen.some((s) => s.logs?.some((l) => l.message.includes("%|"))), "no progress in the logs");
const file = await fetch(data.images[0].url);
assert.equal(file.headers.get("content-type"), "image/png");

// What submit answers is where the client looks by itself.
const one = await fal.queue.submit(endpoint, { input: { prompt: "addresses" } });
assert.equal(one.status, "IN_QUEUE");
assert.equal(one.queue_position, 0);
assert.equal(one.status_url, `${queue}/fal-ai/painter/requests/${one.request_id}/status`);
assert.equal(one.response_url, `${queue}/fal-ai/painter/requests/${one.request_id}`);
assert.equal(one.cancel_url, `${queue}/fal-ai/painter/requests/${one.request_id}/cancel`);
await assert.rejects(fal.queue.result(endpoint, { requestId: one.request_id }), (e) => e instanceof ApiError && e.status === 400);

// Cancel: while it waits, while it works, and too late.
await fal.queue.cancel(endpoint, { requestId: one.request_id });
await assert.rejects(fal.queue.result(endpoint, { requestId: one.request_id }), (e) => e.status === 499 && e.body.error_type === "client_cancelled");
await assert.rejects(fal.queue.cancel(endpoint, { requestId }), (e) => e.status === 400 && e.body.status === "ALREADY_COMPLETED");
await assert.rejects(fal.queue.cancel(endpoint, { requestId: "nothing" }), (e) => e.status === 404);

// A file, uploaded by the client and used as an input.
const url = await fal.storage.upload(new Blob([new Uint8Array(300 * 1024)], { type: "image/png" }));
await fal.subscribe(endpoint, { input: { prompt: "from a file", image_url: url }, pollInterval: 10 });

// What is refused.
await assert.rejects(fal.subscribe(endpoint, { input: { num_images: 1 }, pollInterval: 10 }),
  (e) => e instanceof ValidationError && e.getFieldErrors("prompt")[0].type === "missing");
await assert.rejects(fal.queue.submit("fal-ai/nothing", { input: {} }), (e) => e.status === 404);
await assert.rejects(client("wrong").queue.submit(endpoint, { input: { prompt: "x" } }), (e) => e.status === 401);
