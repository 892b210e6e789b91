// Drives Atelier's OpenAI-compatible interface with OpenAI's own client, and
// prints the ids of the runs: node door.mjs URL KEY PICTURE.
import assert from "node:assert/strict";
import fs from "node:fs";
import OpenAI, { toFile, AuthenticationError, BadRequestError, NotFoundError } from "openai";

const [baseURL, apiKey, picture] = process.argv.slice(2);
const openai = new OpenAI({ baseURL, apiKey });
const png = (bytes) => assert.equal(Buffer.from(bytes).subarray(1, 4).toString(), "PNG");
const decoded = (b64) => Buffer.from(b64, "base64");
const runs = new Set();
const note = (result) => {
  assert.match(result._request_id, /^[0-9a-f-]{36}$/);
  runs.add(result._request_id);
  return result;
};
const image = () => toFile(fs.createReadStream(picture), "photo.jpg", { type: "image/jpeg" });

// Models, as a page that the client walks.
const models = [];
for await (const m of openai.models.list()) models.push(m.id);
for (const id of ["gradient", "sketch", "speech", "still-to-video", "cut-out"]) assert.ok(models.includes(id), id);
assert.equal((await openai.models.retrieve("sketch")).owned_by, "atelier");

// Pictures by address, in the response, and while they are made.
const byURL = note(await openai.images.generate({ model: "gradient", prompt: "unused", n: 1 }));
png(await (await fetch(byURL.data[0].url)).arrayBuffer());
const inline = note(await openai.images.generate({ model: "sketch", prompt: "red fox", size: "1024x1024", response_format: "b64_json", seed: 7, steps: 2 }));
png(decoded(inline.data[0].b64_json));
assert.equal(inline.size, "512x512");
assert.equal(inline.usage.total_tokens, 1);
const seen = [];
for await (const e of await openai.images.generate({ model: "sketch", prompt: "red fox", stream: true, partial_images: 2, size: "512x512" })) {
  seen.push(e.type);
  if (e.type === "image_generation.completed") png(decoded(e.b64_json));
}
assert.equal(seen.at(-1), "image_generation.completed");

// Edits and variations of a picture.
const edited = note(await openai.images.edit({ model: "adjust", image: await image(), prompt: "unused", response_format: "b64_json", exposure: 1 }));
assert.ok(decoded(edited.data[0].b64_json).length > 1000);
const varied = note(await openai.images.createVariation({ model: "adjust", image: await image() }));
assert.ok(varied.data[0].url);

// Speech.
const speech = await openai.audio.speech.create({ model: "speech", input: "Good morning.", voice: "alloy", speed: 1.2 });
assert.equal(speech.headers.get("content-type"), "audio/wav");
assert.equal(Buffer.from(await speech.arrayBuffer()).subarray(0, 4).toString(), "RIFF");
runs.add(speech.headers.get("x-request-id"));

// Videos.
let video = note(await openai.videos.create({ model: "still-to-video", prompt: "unused", input_reference: await image(), seconds: "1", size: "640x360" }));
assert.equal(video.object, "video");
while (video.status === "queued" || video.status === "in_progress") {
  await new Promise((done) => setTimeout(done, 200));
  video = await openai.videos.retrieve(video.id);
}
assert.equal(video.status, "completed", JSON.stringify(video));
assert.equal(video.size, "640x360");
const film = Buffer.from(await (await openai.videos.downloadContent(video.id)).arrayBuffer());
assert.equal(film.subarray(4, 8).toString(), "ftyp");
const listed = [];
for await (const v of openai.videos.list({ limit: 1 })) listed.push(v.id);
assert.deepEqual(listed, [video.id]);
assert.equal((await openai.videos.delete(video.id)).deleted, true);
await assert.rejects(openai.videos.retrieve(video.id), NotFoundError);

// Errors.
await assert.rejects(openai.images.generate({ model: "nothing", prompt: "x" }), (e) => e instanceof NotFoundError && e.code === "model_not_found");
await assert.rejects(openai.images.generate({ model: "sketch", prompt: "x", size: "1024x1792" }), (e) => e instanceof BadRequestError && e.param === "size" && /512x512/.test(e.message));
await assert.rejects(openai.images.generate({ model: "sketch", prompt: "x", n: 99 }), (e) => e instanceof BadRequestError && e.param === "n");
await assert.rejects(new OpenAI({ baseURL, apiKey: "ate_wrong" }).models.list(), AuthenticationError);

// The client's own retries: the first response is lost, and then 63 clients
// whose first attempt is lost send the same request again.
let losses = 0;
const losing = async (url, init) => {
  const first = new Headers(init.headers).get("x-stainless-retry-count") === "0";
  if (first && losses++ > 0) throw new Error("the connection broke before the request was sent");
  const response = await fetch(url, init);
  if (!first) return response;
  await response.arrayBuffer();
  throw new Error("the connection broke before the response arrived");
};
const unreliable = new OpenAI({ baseURL, apiKey, fetch: losing, maxRetries: 2 });
const request = () => unreliable.images.generate({ model: "gradient", prompt: "retried", response_format: "b64_json" });
const repeated = await Promise.all([request(), ...Array.from({ length: 63 }, request)]);
assert.equal(new Set(repeated.map((r) => r._request_id)).size, 1);
runs.add(repeated[0]._request_id);

console.log(JSON.stringify([...runs]));
