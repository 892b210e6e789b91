// Drives a server with OpenAI's own client: node openai.mjs URL KEY.
import assert from "node:assert/strict";
import OpenAI, { toFile, APIError, AuthenticationError, BadRequestError, NotFoundError, RateLimitError } from "openai";

const [baseURL, apiKey, busy] = process.argv.slice(2);
const client = (key) => new OpenAI({ baseURL, apiKey: key, maxRetries: 0 });
const openai = client(apiKey);
const png = (bytes) => assert.equal(Buffer.from(bytes).subarray(1, 4).toString(), "PNG");
const decoded = (b64) => Buffer.from(b64, "base64");

if (busy) {
  await assert.rejects(openai.models.list(), (e) => e instanceof RateLimitError && e.headers.get("retry-after") === "1");
  process.exit(0);
}

// Models, as a page that the client walks.
const models = [];
for await (const m of openai.models.list()) models.push(m.id);
assert.ok(models.includes("gpt-image-1"));

// Pictures: at once, and while they come.
const pictures = await openai.images.generate({ model: "gpt-image-1", prompt: "a fox", n: 2, size: "1024x1024" });
assert.equal(pictures.data.length, 2);
assert.equal(typeof pictures.created, "number");
for (const p of pictures.data) png(decoded(p.b64_json));
const seen = [];
for await (const e of await openai.images.generate({ model: "gpt-image-1", prompt: "a fox", stream: true, partial_images: 2 })) {
  seen.push(e.type);
  png(decoded(e.b64_json));
}
assert.deepEqual(seen, ["image_generation.partial_image", "image_generation.partial_image", "image_generation.completed"]);

// An older model names an address, which lies at the server here.
const [older] = (await openai.images.generate({ model: "dall-e-3", prompt: "a fox" })).data;
assert.ok(older.url);

// Edits, of one picture and of several.
const file = () => toFile(decoded(pictures.data[0].b64_json), "fox.png", { type: "image/png" });
for (const image of [await file(), [await file(), await file()]]) {
  const edited = await openai.images.edit({ model: "gpt-image-1", prompt: "a red fox", image, mask: await file() });
  png(decoded(edited.data[0].b64_json));
}

// Speech is the sound itself.
const sound = Buffer.from(await (await openai.audio.speech.create({ model: "gpt-4o-mini-tts", voice: "alloy", input: "Good evening.", response_format: "wav" })).arrayBuffer());
assert.equal(sound.subarray(0, 4).toString(), "RIFF");
assert.equal(sound.readUInt32LE(4), sound.length - 8);

// A video: begun, looked after, fetched, deleted.
let video = await openai.videos.create({ model: "sora-2", prompt: "a fox", seconds: "4", size: "1280x720", input_reference: await file() });
assert.equal(video.object, "video");
assert.equal(video.status, "queued");
await assert.rejects(openai.videos.downloadContent(video.id), NotFoundError);
const progress = [];
while (video.status !== "completed") {
  video = await openai.videos.retrieve(video.id);
  progress.push(video.progress);
  assert.ok(progress.length < 10);
}
assert.deepEqual(progress, [33, 66, 100]);
assert.equal(video.seconds, "4");
const film = Buffer.from(await (await openai.videos.downloadContent(video.id)).arrayBuffer());
assert.equal(film.subarray(4, 8).toString(), "ftyp");
assert.deepEqual(await openai.videos.delete(video.id), { id: video.id, deleted: true, object: "video.deleted" });
await assert.rejects(openai.videos.retrieve(video.id), NotFoundError);

// What is refused.
const bad = (code) => (e) => e instanceof BadRequestError && e instanceof APIError && e.code === code && e.type === "invalid_request_error";
await assert.rejects(openai.images.generate({ model: "gpt-image-1", prompt: "a fox", response_format: "url" }), bad("unknown_parameter"));
await assert.rejects(openai.images.generate({ model: "gpt-image-1", prompt: "a fox", seed: 1 }), bad("unknown_parameter"));
await assert.rejects(openai.images.generate({ model: "gpt-image-1", prompt: "a fox", n: 11 }), bad("invalid_value"));
await assert.rejects(openai.images.generate({ model: "gpt-image-1" }), bad("missing_required_parameter"));
await assert.rejects(openai.videos.create({ model: "sora-2", prompt: "a fox", seconds: "5" }), bad("invalid_value"));
await assert.rejects(openai.images.generate({ model: "none", prompt: "a fox" }), (e) => e instanceof NotFoundError && e.code === "model_not_found");
await assert.rejects(client("wrong").models.list(), (e) => e instanceof AuthenticationError && e.code === "invalid_api_key");
