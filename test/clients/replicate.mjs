// Drives a server with Replicate's own client: node replicate.mjs URL TOKEN.
import assert from "node:assert/strict";
import Replicate from "replicate";

const [baseUrl, auth] = process.argv.slice(2);
const client = new Replicate({ auth, baseUrl, useFileOutput: false, fileEncodingStrategy: "upload" });
const version = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa";

assert.equal((await client.accounts.current()).username, "acme");

const model = await client.models.get("acme", "painter");
assert.ok(model.latest_version.openapi_schema.components.schemas.Input.properties.prompt);

// A run as the client does it: create, wait, outputs.
const seen = [];
const output = await client.run("acme/painter", { input: { prompt: "a fox", num_outputs: 2 }, wait: { mode: "poll", interval: 10 } }, (p) => seen.push(p));
assert.equal(output.length, 2);
assert.equal(seen.at(0).status, "starting");
assert.equal(seen.at(-1).status, "succeeded");
assert.ok(seen.some((p) => Replicate.parseProgressFromLogs(p)?.percentage > 0), "no progress in the logs");
const file = await fetch(output[0]);
assert.equal(file.headers.get("content-type"), "image/png");

// The client's other ways to create.
for (const p of [
  await client.predictions.create({ version, input: { prompt: "by version" }, wait: true }),
  await client.deployments.predictions.create("acme", "studio", { input: { prompt: "by deployment" }, wait: 5 }),
]) {
  assert.equal(p.status, "succeeded");
  assert.ok(p.urls.get.endsWith(p.id));
}

// A file, uploaded by the client and used as an input.
const uploaded = await client.files.create(new Blob([new Uint8Array(300 * 1024)], { type: "image/png" }));
assert.equal(uploaded.size, 300 * 1024);
assert.equal((await client.files.get(uploaded.id)).checksums.sha256, uploaded.checksums.sha256);
await client.run("acme/painter", { input: { prompt: "from a file", image: Buffer.from("a small file") } });

// Cancel.
const long = await client.predictions.create({ model: "acme/painter", input: { prompt: "to be cancelled" } });
assert.equal((await client.predictions.cancel(long.id)).status, "canceled");
assert.equal((await client.predictions.get(long.id)).status, "canceled");

// The list: newest first, in pages.
for (let i = 0; i < 100; i++) await client.predictions.create({ model: "acme/painter", input: { prompt: `many ${i}` } });
const pages = [];
for await (const page of client.paginate(client.predictions.list)) pages.push(page);
assert.equal(pages.length, 2);
assert.equal(pages[0].length, 100);
assert.deepEqual(pages[0][0].input, { prompt: "many 99" });
assert.ok(pages[1].some((p) => p.id === long.id));

// What is refused.
const status = async (promise) => (await promise.then(() => assert.fail("it was taken"), (e) => e)).response?.status;
assert.equal(await status(client.predictions.create({ model: "acme/painter", input: {} })), 422);
assert.equal(await status(client.predictions.create({ model: "acme/nothing", input: { prompt: "x" } })), 404);
assert.equal(await status(client.predictions.get("nothing")), 404);
assert.equal(await status(new Replicate({ auth: "wrong", baseUrl }).accounts.current()), 401);
