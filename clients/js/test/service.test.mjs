// Tests with the real program: ATELIER_URL is its address, ATELIER_TOKEN a personal access token of a person with tokens.
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { Client, hasEnded, libraryInput, openFile, uploadInput } from '../dist/node.js';
import { makeWAV } from './sound.mjs';

const { ATELIER_URL: baseURL, ATELIER_TOKEN: token } = process.env;
const options = baseURL && token ? {} : { skip: 'ATELIER_URL and ATELIER_TOKEN name no service' };
if (options.skip && process.env.CI) {
  throw new Error(options.skip);
}
// Small pictures leave the time to the client.
const small = { width: 64, height: 64 };
const client = baseURL ? new Client({ baseURL, token }) : undefined;

function makeFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'atelier-client-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function hashOf(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

test('a picture from start to file', options, async (t) => {
  const folder = makeFolder(t);
  const { user } = await client.me.get();
  assert.match(user.email, /@/);
  const before = (await client.runs.list().page()).data.length;

  const events = [];
  const run = await client.run(
    { tool: 'gradient', inputs: { seed: 7, size: small }, num_results: 1, metadata: { shot: 12 } },
    { onEvent: (event) => events.push(event.name), idempotencyKey: `js-${randomBytes(8).toString('hex')}` },
  );
  assert.equal(run.status, 'succeeded');
  assert.equal(run.seed, 7);
  assert.deepEqual(run.metadata, { shot: 12 });
  assert.equal(events.at(-1), 'done');
  assert.equal(run.outputs.length, 1);

  const [output] = run.outputs;
  const path = join(folder, 'picture.png');
  await client.download(output, path);
  assert.equal(hashOf(readFileSync(path)), output.sha256);
  const blob = await client.downloads.blob(output);
  assert.equal(blob.size, output.size_bytes);

  // The same run again by its id, in lists and in the library.
  assert.equal((await client.runs.get(run.request_id)).status, 'succeeded');
  assert.deepEqual((await client.runs.get(run.request_id, { include: 'inputs' })).inputs.seed, 7);
  assert.ok((await client.runs.list().page()).data.length > before || before >= 24);
  const item = await client.library.get(output.id);
  assert.equal(item.request_id, run.request_id);
  assert.equal((await client.downloads.blob(item)).size, output.size_bytes);
  await client.library.addFavorite(output.id);
  const favorites = await client.library.list({ favorited: true }).all();
  assert.ok(favorites.some((favorite) => favorite.id === output.id));
  const replayed = [];
  for await (const event of client.runs.events(run.request_id)) {
    replayed.push(event.name);
  }
  assert.equal(replayed.at(-1), 'done');

  // Pictures as inputs: a file sent along, an upload, and a result.
  const resize = await client.tools.get('resize');
  const field = pictureField(resize.fields);
  const upload = await client.uploadFile(path, { onProgress() {} });
  assert.equal(upload.name, 'picture.png');
  for (const picture of [await openFile(path), uploadInput(upload), libraryInput(output)]) {
    const resized = await client.run({ tool: resize, inputs: { [field]: picture, size: small } });
    assert.equal(resized.outputs.length, 1);
  }
  await client.uploads.delete(upload.id);
  await assert.rejects(client.uploads.get(upload.id), { code: 'NOT_FOUND', status: 404 });
});

function pictureField(nodes) {
  for (const node of nodes) {
    const found = node.isField ? (/^IMG/.test(node.type) ? node.fieldKey : undefined) : pictureField(node.children);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

test('the same key starts one run', options, async () => {
  const key = randomBytes(8).toString('hex');
  const tool = await client.tools.get('gradient');
  const request = { tool, inputs: { seed: 1, size: small } };
  const created = await Promise.all([1, 2, 3, 4].map(() => client.runs.create(request, { idempotencyKey: key })));
  assert.equal(new Set(created.map((run) => run.request_id)).size, 1);
  const other = { tool, inputs: { seed: 2, size: small } };
  await assert.rejects(client.runs.create(other, { idempotencyKey: key }), {
    code: 'IDEMPOTENCY_KEY_CONFLICT',
    status: 409,
  });
  const run = await client.runs.wait(created[0]);
  assert.ok(hasEnded(run));
  assert.equal((await client.runs.cancel(run.request_id)).status, 'succeeded');
});

test('a large file is sent in parts', options, async (t) => {
  const file = makeWAV(9 << 20);
  const path = join(makeFolder(t), 'noise.wav');
  writeFileSync(path, file);
  const progress = [];
  const upload = await client.uploadFile(path, { onProgress: ({ loaded }) => progress.push(loaded) });
  assert.deepEqual(progress, [0, 4 << 20, 8 << 20, 9 << 20]);
  assert.equal(upload.name, 'noise.wav');
  assert.equal(upload.size_bytes, file.length);
  assert.equal(upload.sha256, hashOf(file));
  await client.uploads.delete(upload.id);

  // A refused file gets the same error in both ways.
  const text = new Blob(['no picture at all']);
  for (const resumable of [false, true]) {
    await assert.rejects(client.uploads.create(text, { resumable }), { code: 'UNSUPPORTED_MEDIA_TYPE', status: 415 });
  }
});

test('lists, tags, kits, prices and errors', options, async () => {
  const slugs = [];
  for await (const tool of client.tools.list({ limit: 5 })) {
    slugs.push(tool.slug);
  }
  assert.ok(slugs.includes('gradient'));
  assert.equal(new Set(slugs).size, slugs.length);
  assert.equal(slugs.length, (await client.tools.list().all()).length);
  assert.ok((await client.tools.listTags()).data.length > 0);
  assert.ok((await client.tools.listKits()).data.length >= 0);
  const price = await client.runs.previewCost({ tool: 'gradient', inputs: { seed: 1 } });
  assert.equal(typeof price.can_run, 'boolean');
  assert.ok((await client.me.listLedger().page()).data.length > 0);
  assert.match((await client.webhooks.getSecret()).secret, /^whsec_/);
  assert.equal((await client.service.getOpenAPI()).openapi, '3.1.0');

  await assert.rejects(client.runs.create({ tool: 'gradient', inputs: { nonsense: 1 } }), (error) => {
    assert.equal(error.code, 'INVALID_REQUEST');
    assert.match(error.details.fields[0].path, /nonsense/);
    assert.match(error.trace_id, /^[0-9a-f]{32}$/);
    return true;
  });
  const stranger = new Client({ baseURL, token: 'wrong' });
  await assert.rejects(stranger.me.get(), { code: 'UNAUTHENTICATED', status: 401 });
  await assert.rejects(client.runs.get(randomUUID()), { code: 'NOT_FOUND', status: 404 });
});

test('flows from check to run', options, async () => {
  const steps = (tool) => [
    { id: 'draw', tool: 'gradient', inputs: { size: { value: small } } },
    { id: 'shrink', tool, inputs: { picture: { step: 'draw' } } },
  ];
  const bad = { name: 'From JavaScript', steps: steps('resized') };
  const { problems, price: unknown } = await client.flows.check(bad);
  assert.deepEqual(
    problems.map((problem) => problem.path),
    ['steps.1.tool'],
  );
  assert.ok(unknown === null || unknown.tokens >= 0);
  await assert.rejects(client.flows.create(bad), { code: 'INVALID_REQUEST', status: 400 });

  const draft = { ...bad, steps: steps('resize') };
  const { price } = await client.flows.check(draft);
  assert.equal(price.tokens, 1);
  const flow = await client.flows.create(draft);
  assert.match(flow.slug, /^flow-/);
  const changed = await client.flows.change(flow.id, { ...draft, version: 1, name: 'Changed' });
  assert.equal(changed.version, 2);
  await assert.rejects(client.flows.change(flow.id, { ...draft, version: 1, name: 'Late' }), {
    code: 'CONFLICT',
    status: 412,
  });
  assert.equal((await client.flows.get(flow.id)).name, 'Changed');
  assert.ok((await client.flows.list()).data.some((one) => one.id === flow.id));
  const versions = await client.flows.listVersions(flow.id);
  assert.deepEqual(
    versions.data.map((one) => one.name),
    ['Changed', 'From JavaScript'],
  );

  const run = await client.run({ tool: flow.slug });
  assert.equal(run.status, 'succeeded');
  assert.deepEqual(
    run.steps.map((step) => step.step),
    ['draw', 'shrink'],
  );
  const origin = await client.flows.draft({ library_id: run.outputs[0].id });
  assert.ok(origin.steps.length > 0);
  await client.flows.delete(flow.id);
  await assert.rejects(client.flows.get(flow.id), { code: 'NOT_FOUND', status: 404 });
});

test('boards and their events', options, async () => {
  const board = await client.boards.create({ name: 'A board' });
  const controller = new AbortController();
  const names = [];
  const followed = (async () => {
    for await (const event of client.boards.events(board.id, { signal: controller.signal })) {
      names.push(event.name);
      if (event.name === 'nodes') {
        return event.data;
      }
    }
    return undefined;
  })();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const node = await client.boards.addNode(board.id, { kind: 'TEXT', text: 'hello', x: 1, y: 2 });
  assert.equal(node.text, 'hello');
  const change = await followed;
  assert.ok(JSON.stringify(change).includes(node.id));
  controller.abort();
  await assert.rejects(client.boards.rename(board.id, { name: 'B' }, { revision: 1 }), {
    code: 'CONFLICT',
    status: 412,
  });
  const renamed = await client.boards.rename(board.id, { name: 'B' });
  assert.equal(renamed.name, 'B');
  await client.boards.delete(board.id);
  assert.equal((await client.boards.restore(board.id)).name, 'B');
  await client.boards.delete(board.id);
});

test('the stream of the account tells of a run', options, async () => {
  const controller = new AbortController();
  const ended = (async () => {
    for await (const event of client.events.stream({}, { signal: controller.signal })) {
      if (event.name === 'run' && event.data.status === 'succeeded' && event.data.metadata?.mark === 'stream') {
        return event.data;
      }
    }
    return undefined;
  })();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const created = await client.runs.create({ tool: 'gradient', inputs: { size: small }, metadata: { mark: 'stream' } });
  assert.equal((await ended).request_id, created.request_id);
  controller.abort(new Error('enough'));
  await assert.rejects(client.events.stream({}, { signal: controller.signal }).next(), /enough/);
});
