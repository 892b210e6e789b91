import assert from 'node:assert/strict';
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import test from 'node:test';
import { inspect } from 'node:util';
import { parseRetryAfter } from '../dist/errors.js';
import { EventParser } from '../dist/events.js';
import { Client, MemoryStore, Pages, SHA256, verifyWebhook, webhookHandler } from '../dist/index.js';
import { nodeWebhookHandler } from '../dist/node.js';
import { rules } from '../dist/operations.js';

test('every operation has a call', () => {
  // Only the studio has a session's cookie, GET and POST poll for the same tokens, and uploads need no description of the
  // protocol.
  const others = ['createWebToken', 'pollDevice', 'describeResumableUploads'];
  const folder = new URL('../src/', import.meta.url);
  const source = readdirSync(folder)
    .filter((name) => name !== 'schema.ts' && name !== 'operations.ts')
    .map((name) => readFileSync(new URL(name, folder), 'utf8'))
    .join('\n');
  const missing = Object.keys(rules).filter((name) => !others.includes(name) && !source.includes(`'${name}'`));
  assert.deepEqual(missing, []);
});

test('events are parsed however they are cut', () => {
  const text =
    ': hello\nretry: 1000\n\nid: 4\nevent: progress\ndata: {"a":\ndata: 1}\n\nevent: nothing\n\nid: 5\r\ndata: "x"\r\n\r\n';
  const want = [
    { id: '4', name: 'progress', data: '{"a":\n1}' },
    { id: '5', name: 'message', data: '"x"' },
  ];
  for (let size = 1; size <= text.length; size++) {
    const parser = new EventParser();
    const got = [];
    for (let at = 0; at < text.length; at += size) {
      got.push(...parser.push(text.slice(at, at + size)));
    }
    assert.deepEqual(got, want, `pieces of ${size}`);
  }
});

test('the hash is SHA-256 for every length of the last block', () => {
  for (let length = 0; length < 200; length++) {
    const bytes = randomBytes(length);
    const hash = new SHA256();
    hash.update(bytes.subarray(0, length / 3));
    hash.update(bytes.subarray(length / 3));
    assert.equal(hash.hex(), createHash('sha256').update(bytes).digest('hex'), `length ${length}`);
  }
});

test('Retry-After has two forms', () => {
  const now = Date.parse('2026-11-15T09:30:00Z');
  assert.equal(parseRetryAfter('17', now), 17);
  assert.equal(parseRetryAfter('Sun, 15 Nov 2026 09:30:05 GMT', now), 5);
  assert.equal(parseRetryAfter('Sun, 15 Nov 2026 09:29:00 GMT', now), 0);
  assert.equal(parseRetryAfter('soon', now), undefined);
  assert.equal(parseRetryAfter(null, now), undefined);
});

test('lists are read page by page, and only as far as needed', async () => {
  const reads = [];
  const list = new Pages(async (cursor) => {
    reads.push(cursor);
    const from = Number(cursor ?? 0);
    return { data: [from, from + 1], has_more: from < 4, next_cursor: from < 4 ? String(from + 2) : null };
  });
  assert.deepEqual(await list.all(), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(reads, [undefined, '2', '4']);
  assert.deepEqual(await list.all(2), [0, 1]);
  assert.deepEqual((await list.page('2')).data, [2, 3]);
});

test('a client needs the address of a service and one credential', () => {
  assert.throws(() => new Client({ baseURL: 'ftp://x' }), TypeError);
  assert.throws(() => new Client({ baseURL: 'somewhere' }), TypeError);
  assert.throws(() => new Client({ baseURL: 'http://x', token: 't', store: { load() {}, save() {} } }), TypeError);
});

test('no token is shown when a client is printed', () => {
  const tokens = { id_token: 'hidden-1', refresh_token: 'hidden-2', expires_at: 0 };
  const clients = [
    new Client({ baseURL: 'http://x', token: 'hidden-3' }),
    new Client({ baseURL: 'http://x', store: new MemoryStore(tokens) }).forTeam('t'),
  ];
  assert.doesNotMatch(inspect(clients, { depth: 20 }), /hidden/);
  assert.doesNotMatch(JSON.stringify(clients), /hidden/);
});

const secret = `whsec_${randomBytes(24).toString('base64')}`;
const oldSecret = `whsec_${randomBytes(24).toString('base64')}`;
const body = JSON.stringify({
  type: 'generation.succeeded',
  timestamp: '2026-11-15T09:30:09Z',
  data: { metadata: 'ä' },
});

function sign(key, id, timestamp, text) {
  const bytes = Buffer.from(key.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', bytes).update(`${id}.${timestamp}.${text}`).digest('base64')}`;
}

function signedHeaders(key, { id = 'msg_1', seconds = Date.now() / 1000, text = body } = {}) {
  const timestamp = String(Math.floor(seconds));
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': sign(key, id, timestamp, text) };
}

test('webhooks: the example of the standard', async () => {
  const headers = {
    'Webhook-Id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'Webhook-Timestamp': '1614265330',
    'Webhook-Signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  };
  const options = { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', now: 1614265330_000 };
  const { id, event } = await verifyWebhook('{"test": 2432232314}', headers, options);
  assert.equal(id, 'msg_p5jXN8AQM9LWM0D4loKWxJek');
  assert.deepEqual(event, { test: 2432232314 });
});

test('webhooks: good and bad signatures', async () => {
  const good = signedHeaders(secret);
  assert.equal((await verifyWebhook(body, new Headers(good), { secret })).event.type, 'generation.succeeded');
  assert.equal((await verifyWebhook(Buffer.from(body), good, { secret })).id, 'msg_1');
  const both = {
    ...good,
    'webhook-signature': `v1a,xx ${signedHeaders(oldSecret)['webhook-signature']} ${good['webhook-signature']}`,
  };
  await verifyWebhook(body, both, { secret });
  await verifyWebhook(body, both, { secret: [secret, oldSecret] });
  await verifyWebhook(body, signedHeaders(oldSecret), { secret: [secret, oldSecret] });

  const now = Date.now() / 1000;
  const bad = {
    'another body': [`${body} `, good],
    'another secret': [body, signedHeaders(oldSecret)],
    'another id': [body, { ...good, 'webhook-id': 'msg_2' }],
    'no id': [body, { ...signedHeaders(secret, { id: '' }), 'webhook-id': '' }],
    'too old': [body, signedHeaders(secret, { seconds: now - 302 })],
    'in the future': [body, signedHeaders(secret, { seconds: now + 302 })],
    'no timestamp': [body, { ...good, 'webhook-timestamp': '' }],
    'a timestamp that is no number': [body, { ...good, 'webhook-timestamp': 'now' }],
    'no signature': [body, { ...good, 'webhook-signature': '' }],
    'a signature that is no base64': [body, { ...good, 'webhook-signature': 'v1,ä' }],
    'another version': [body, { ...good, 'webhook-signature': good['webhook-signature'].replace('v1,', 'v2,') }],
  };
  for (const [name, [text, headers]] of Object.entries(bad)) {
    await assert.rejects(verifyWebhook(text, headers, { secret }), { code: 'WEBHOOK_INVALID' }, name);
  }
  await assert.rejects(verifyWebhook(body, good, { secret: 'whsec_' }), TypeError);
});

test('webhooks: the handlers answer', async (t) => {
  const received = [];
  const onEvent = ({ id, event }) => {
    if (id === 'msg_broken') {
      throw new Error('no room');
    }
    received.push(`${id} ${event.type}`);
  };
  const handle = webhookHandler({ secret, onEvent, maxBytes: 1000 });
  const server = createServer(nodeWebhookHandler({ secret, onEvent, maxBytes: 1000 }));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}/hook`;
  const long = 'x'.repeat(2000);
  const cases = [
    [{ method: 'POST', body, headers: signedHeaders(secret) }, 204],
    [{ method: 'POST', body, headers: signedHeaders(oldSecret) }, 401],
    [{ method: 'POST', body, headers: signedHeaders(secret, { id: 'msg_broken' }) }, 500],
    [{ method: 'POST', body: long, headers: signedHeaders(secret, { text: long }) }, 413],
    [{ method: 'GET' }, 405],
  ];
  for (const [init, status] of cases) {
    assert.equal((await handle(new Request(url, init))).status, status);
    assert.equal((await fetch(url, init)).status, status);
  }
  assert.deepEqual(received, ['msg_1 generation.succeeded', 'msg_1 generation.succeeded']);
});
