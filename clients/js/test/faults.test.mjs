import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import test from 'node:test';
import { Client, MemoryStore } from '../dist/index.js';
import { answer, makeTokens, refuse, startServer } from './local-server.mjs';

const tool = { id: 'T'.repeat(20), slug: 'gradient', tool_fields_hash: 'v1:x' };
const created = { request_id: 'r', status: 'pending', retry_after_seconds: 1 };

function clientOf(server, options = {}) {
  // Tests need not wait as long as people do.
  return new Client({
    baseURL: server.url,
    token: 't',
    ...options,
    retry: { minWait: 0.02, maxWait: 0.1, ...options.retry },
  });
}

/** takeFirst removes and returns the first element, and keeps the last. */
function takeFirst(list) {
  return list.length > 1 ? list.shift() : list[0];
}

test('a create keeps its key over lost answers, 408, 429, 500 and 503', async (t) => {
  const faults = [
    (_response, request) => request.socket.destroy(),
    (response) => refuse(response, 408, 'REQUEST_TIMEOUT'),
    (response) => refuse(response, 429, 'RATE_LIMITED', { headers: { 'Retry-After': '1' } }),
    (response) => refuse(response, 500, 'INTERNAL'),
    (response) => refuse(response, 503, 'UPSTREAM_UNAVAILABLE', { headers: { 'Retry-After': '0' } }),
    (response) =>
      refuse(response, 409, 'IDEMPOTENCY_KEY_CONFLICT', { retryable: true, details: { reason: 'in_flight' } }),
    (response, request) => {
      response.writeHead(202, { 'Content-Type': 'application/json', 'Content-Length': '500' });
      response.write('{"request_id"');
      setTimeout(() => request.socket.destroy(), 20);
    },
    (response) => answer(response, 202, created),
  ];
  const server = await startServer(t, (_seen, response, request) => takeFirst(faults)(response, request));
  const run = await clientOf(server).runs.create({ tool, inputs: { seed: 1 } });
  assert.equal(run.request_id, 'r');
  assert.equal(server.requests.length, 8);
  const keys = new Set(server.requests.map((r) => r.headers['idempotency-key']));
  assert.equal(keys.size, 1);
  assert.match([...keys][0], /^[!-~]{16,255}$/);
  assert.equal(new Set(server.requests.map((r) => String(r.body))).size, 1);
  const afterLimit = server.requests[3].at - server.requests[2].at;
  assert.ok(afterLimit >= 990, `the wait after Retry-After: 1 was ${afterLimit} ms`);

  await clientOf(server).runs.create({ tool }, { idempotencyKey: 'mine' });
  assert.equal(server.requests.at(-1).headers['idempotency-key'], 'mine');
});

test('a call that is not safe to repeat is not repeated if it may have happened', async (t) => {
  const faults = [
    (response) => refuse(response, 429, 'RATE_LIMITED', { headers: { 'Retry-After': '0' } }),
    (response) => refuse(response, 500, 'INTERNAL'),
  ];
  const server = await startServer(t, (_seen, response) => takeFirst(faults)(response));
  await assert.rejects(clientOf(server).boards.create({ name: 'b' }), { code: 'INTERNAL', status: 500 });
  assert.equal(server.requests.length, 2);

  const cut = await startServer(t, (_seen, _response, request) => request.socket.destroy());
  await assert.rejects(clientOf(cut).boards.create({ name: 'b' }), { code: 'NETWORK', retryable: true });
  assert.equal(cut.requests.length, 1);
  await assert.rejects(clientOf(cut, { retry: { attempts: 3 } }).me.get(), { code: 'NETWORK' });
  assert.equal(cut.requests.length, 4);
});

test('a refusal is an error with all that the service said, at once', async (t) => {
  const server = await startServer(t, (_seen, response) => {
    refuse(response, 400, 'INVALID_REQUEST', { details: { fields: [{ path: 'inputs.x', message: 'no' }] } });
  });
  await assert.rejects(clientOf(server).runs.create({ tool }), (error) => {
    assert.equal(error.name, 'AtelierError');
    assert.equal(error.code, 'INVALID_REQUEST');
    assert.equal(error.status, 400);
    assert.equal(error.retryable, false);
    assert.equal(error.trace_id, 'abc');
    assert.equal(error.message, 'refused with INVALID_REQUEST');
    assert.deepEqual(error.details.fields, [{ path: 'inputs.x', message: 'no' }]);
    return true;
  });
  assert.equal(server.requests.length, 1);

  const page = await startServer(t, (_seen, response) => response.writeHead(404).end('<html>'));
  await assert.rejects(clientOf(page).me.get(), { code: 'BAD_RESPONSE', status: 404 });
});

test('a deletion whose answer was lost has succeeded if nothing is left', async (t) => {
  const replies = [(_response, request) => request.socket.destroy(), (response) => refuse(response, 404, 'NOT_FOUND')];
  const server = await startServer(t, (_seen, response, request) => takeFirst(replies)(response, request));
  await clientOf(server).uploads.delete('u');
  assert.equal(server.requests.length, 2);
  await assert.rejects(clientOf(server).uploads.delete('u'), { code: 'NOT_FOUND' });
});

test('ids cannot change the path', async (t) => {
  const server = await startServer(t, (_seen, response) => answer(response, 200, {}));
  await clientOf(server).uploads.get('../me?x=1');
  assert.equal(server.requests[0].path, '/uploads/..%2Fme%3Fx%3D1');
  for (const bad of ['', '.', '..']) {
    await assert.rejects(clientOf(server).uploads.get(bad), TypeError);
  }
});

test('failed attempts are reported, and a client for a team shares the sign-in', async (t) => {
  let refreshes = 0;
  const replies = [(response) => refuse(response, 500, 'INTERNAL'), (response) => answer(response, 200, { data: [] })];
  const server = await startServer(t, (seen, response) => {
    if (seen.path === '/auth/token/refresh') {
      refreshes++;
      return answer(response, 200, makeTokens('new', 3600));
    }
    return takeFirst(replies)(response);
  });
  const told = [];
  const retry = { minWait: 0.01, onRetry: (failure, wait) => told.push([failure.code, wait > 0]) };
  const client = new Client({ baseURL: server.url, store: new MemoryStore(makeTokens('old', 0)), retry });
  await client.forTeam('team1').uploads.list().page();
  await client.uploads.list().page();
  assert.deepEqual(told, [['INTERNAL', true]]);
  assert.equal(refreshes, 1);
  const teams = server.requests.filter((r) => r.path === '/uploads').map((r) => r.query.get('team_id'));
  assert.deepEqual(teams, ['team1', 'team1', null]);
});

test('what the functions of the caller throw is thrown on, and not repeated', async (t) => {
  const mistake = new TypeError('my own');
  const fail = () => {
    throw mistake;
  };
  const stream = await startServer(t, (_seen, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.end('id: 1\nevent: done\ndata: {"request_id":"r","status":"succeeded","outputs":[]}\n\n');
  });
  await assert.rejects(clientOf(stream).runs.wait('r', { onEvent: fail }), mistake);
  assert.equal(stream.requests.length, 1);
  const file = await startServer(t, (_seen, response) => response.end('abc'));
  const record = { url: `${file.url}/media`, size_bytes: 3 };
  await assert.rejects(clientOf(file).downloads.blob(record, { onProgress: fail }), mistake);
  assert.equal(file.requests.length, 1);
});

test('retries end by number, by time and by signal', async (t) => {
  const server = await startServer(t, (_seen, response) => {
    refuse(response, 503, 'UPSTREAM_UNAVAILABLE', { headers: { 'Retry-After': '60' } });
  });
  const began = Date.now();
  const limited = clientOf(server, { retry: { maxTime: 5 } });
  await assert.rejects(limited.me.get(), { code: 'UPSTREAM_UNAVAILABLE', retry_after: 60 });
  assert.equal(server.requests.length, 1);
  const aborted = new Error('enough');
  const controller = new AbortController();
  setTimeout(() => controller.abort(aborted), 100);
  await assert.rejects(clientOf(server).me.get({ signal: controller.signal }), aborted);
  assert.ok(Date.now() - began < 30_000);

  const silent = await startServer(t, () => {});
  await assert.rejects(clientOf(silent, { timeout: 0.2, retry: { attempts: 2 } }).me.get(), { code: 'TIMEOUT' });
  assert.equal(silent.requests.length, 2);
});

test('tokens are refreshed once for all callers, and the refresh survives a lost answer', async (t) => {
  let refreshes = 0;
  const server = await startServer(t, (seen, response, request) => {
    if (seen.path === '/auth/token/refresh') {
      assert.equal(seen.headers.authorization, undefined);
      assert.equal(JSON.parse(seen.body).refresh_token, 'refresh-old');
      refreshes++;
      return refreshes === 1 ? request.socket.destroy() : answer(response, 200, makeTokens('new', 3600));
    }
    return answer(response, 200, { bearer: seen.headers.authorization });
  });
  const store = new MemoryStore({ ...makeTokens('old', 0), device_id: 'd' });
  const client = new Client({ baseURL: server.url, store });
  const controller = new AbortController();
  const impatient = client.me.get({ signal: controller.signal });
  const answers = Promise.all(Array.from({ length: 20 }, () => client.me.get()));
  controller.abort(new Error('left'));
  await assert.rejects(impatient, /left/);
  for (const { bearer } of await answers) {
    assert.match(bearer, /^Bearer head\..*\.new$/);
  }
  assert.equal(refreshes, 2);
  const stored = await store.load();
  assert.equal(stored.refresh_token, 'refresh-new');
  assert.equal(stored.device_id, 'd');
});

test('a refused ID token is replaced once, and a refused refresh token ends the sign-in', async (t) => {
  const server = await startServer(t, (seen, response) => {
    if (seen.path === '/auth/token/refresh') {
      const isKnown = JSON.parse(seen.body).refresh_token === 'refresh-old';
      return isKnown ? answer(response, 200, makeTokens('new', 3600)) : refuse(response, 401, 'TOKEN_INVALID');
    }
    const isGood = seen.headers.authorization.endsWith('.new');
    return isGood ? answer(response, 200, { ok: true }) : refuse(response, 401, 'UNAUTHENTICATED');
  });
  const client = new Client({ baseURL: server.url, store: new MemoryStore(makeTokens('old', 3600)) });
  assert.deepEqual(await client.me.get(), { ok: true });
  assert.equal(server.requests.length, 3);
  const unknown = new Client({ baseURL: server.url, store: new MemoryStore(makeTokens('gone', 3600)) });
  await assert.rejects(unknown.me.get(), { code: 'TOKEN_INVALID', status: 401 });
  const nobody = new Client({ baseURL: server.url, store: new MemoryStore() });
  await assert.rejects(nobody.me.get(), { code: 'UNAUTHENTICATED' });
});

test('the device flow waits, slows down and stores the tokens', async (t) => {
  const polls = [];
  const replies = [
    (response) => refuse(response, 428, 'AUTHORIZATION_PENDING'),
    (response) => refuse(response, 400, 'SLOW_DOWN', { details: { interval: 0.4 } }),
    (_response, request) => request.socket.destroy(),
    (response) => answer(response, 200, { tokens: makeTokens('new', 3600), device_id: 'd', user: {}, accounts: [] }),
  ];
  const server = await startServer(t, (seen, response, request) => {
    if (seen.path === '/auth/device/start') {
      const codes = {
        device_code: 'secret',
        user_code: 'BCDF-GHJK',
        verification_url: 'http://x',
        expires_in: 60,
        interval: 0.1,
      };
      return answer(response, 200, codes);
    }
    assert.equal(JSON.parse(seen.body).device_code, 'secret');
    polls.push(seen.at);
    return takeFirst(replies)(response, request);
  });
  const store = new MemoryStore();
  const client = new Client({ baseURL: server.url, store });
  let shown = '';
  const result = await client.signIn({
    onCode: (codes) => {
      shown = codes.user_code;
    },
  });
  assert.equal(result.device_id, 'd');
  assert.equal(shown, 'BCDF-GHJK');
  assert.equal((await store.load()).refresh_token, 'refresh-new');
  assert.ok(polls[2] - polls[1] >= 390 && polls[3] - polls[2] >= 390, String(polls));

  const expired = await startServer(t, (seen, response) => {
    const codes = { device_code: 's', user_code: 'u', verification_url: 'http://x', expires_in: 60, interval: 0.05 };
    return seen.path.endsWith('start') ? answer(response, 200, codes) : refuse(response, 410, 'DEVICE_CODE_EXPIRED');
  });
  const late = new Client({ baseURL: expired.url, store: new MemoryStore() });
  await assert.rejects(late.signIn({ onCode() {} }), { code: 'DEVICE_CODE_EXPIRED' });
});

/** startTusServer takes resumable uploads; fault decides what happens to the n-th part. */
async function startTusServer(t, fault) {
  const state = { bytes: Buffer.alloc(0), length: 0, parts: 0, heads: 0, largest: 0, deletes: 0, starts: new Set() };
  const server = await startServer(t, (seen, response, request) => {
    if (seen.path === '/uploads/resumable') {
      assert.equal(seen.headers['tus-resumable'], '1.0.0');
      assert.equal(Buffer.from(seen.headers['upload-metadata'].split(' ')[1], 'base64').toString(), 'nöise.wav');
      state.length = Number(seen.headers['upload-length']);
      state.starts.add(seen.headers['idempotency-key']);
      const location = 'https://elsewhere.example/api/v2/uploads/resumable/up%201';
      return response.writeHead(201, { Location: location, 'Upload-Offset': String(state.bytes.length) }).end();
    }
    if (seen.path === '/uploads/final') {
      return answer(response, 200, { id: 'final' });
    }
    assert.equal(seen.path, '/uploads/resumable/up%201');
    const headers = () => ({
      'Upload-Offset': String(state.bytes.length),
      ...(state.bytes.length === state.length ? { 'Upload-Id': 'final' } : {}),
    });
    if (seen.method === 'DELETE') {
      state.deletes++;
      return response.writeHead(204).end();
    }
    if (seen.method === 'HEAD') {
      state.heads++;
      return response.writeHead(200, headers()).end();
    }
    if (Number(seen.headers['upload-offset']) !== state.bytes.length) {
      return refuse(response, 409, 'UPLOAD_OFFSET_CONFLICT', { headers: headers() });
    }
    state.largest = Math.max(state.largest, seen.body.length);
    return fault(++state.parts, state, seen, () => response.writeHead(204, headers()).end(), response, request);
  });
  return { ...server, state };
}

test('a resumable upload is not given up while more and more of it arrives', async (t) => {
  const file = randomBytes(10_000);
  const server = await startTusServer(t, (_part, state, seen, _accept, _response, request) => {
    state.bytes = Buffer.concat([state.bytes, seen.body.subarray(0, 1000)]);
    request.socket.destroy();
  });
  const client = clientOf(server, { retry: { attempts: 2 } });
  const upload = await client.uploads.create(new Blob([file]), { name: 'nöise.wav', resumable: true });
  assert.equal(upload.id, 'final');
  assert.ok(server.state.bytes.equals(file));
  assert.equal(server.state.parts, 10);
});

test('a resumable upload goes on where the service has it', async (t) => {
  const file = randomBytes(10_000);
  const server = await startTusServer(t, (part, state, seen, accept, response, request) => {
    switch (part) {
      case 1: // half of the part is stored, and the answer is lost
        state.bytes = Buffer.concat([state.bytes, seen.body.subarray(0, 1500)]);
        return request.socket.destroy();
      case 2:
        return refuse(response, 503, 'UPSTREAM_UNAVAILABLE', { headers: { 'Retry-After': '0' } });
      case 3:
        return refuse(response, 423, 'CONFLICT');
    }
    state.bytes = Buffer.concat([state.bytes, seen.body]);
    // The answer to the last part is lost too.
    return state.bytes.length === state.length ? request.socket.destroy() : accept();
  });
  const seen = [];
  const upload = await clientOf(server).uploads.create(new Blob([file]), {
    name: 'nöise.wav',
    resumable: true,
    partBytes: 3000,
    onProgress: ({ loaded }) => seen.push(loaded),
  });
  assert.equal(upload.id, 'final');
  assert.ok(server.state.bytes.equals(file));
  assert.equal(server.state.largest, 3000);
  assert.equal(server.state.heads, 4);
  assert.equal(seen[0], 0);
  assert.equal(seen.at(-1), 10_000);

  // The same key in another process continues after what is there.
  const other = await startTusServer(t, (_part, state, part, accept) => {
    state.bytes = Buffer.concat([state.bytes, part.body]);
    accept();
  });
  other.state.bytes = file.subarray(0, 4000);
  const options = { name: 'nöise.wav', resumable: true, idempotencyKey: 'mine' };
  await clientOf(other).uploads.create(file, options);
  assert.ok(other.state.bytes.equals(file));
  assert.deepEqual([...other.state.starts], ['mine']);
  assert.equal(other.state.parts, 1);
});

test('an upload that is given up is deleted, unless its key is known', async (t) => {
  for (const idempotencyKey of [undefined, 'mine']) {
    const controller = new AbortController();
    const server = await startTusServer(t, () => controller.abort(new Error('enough')));
    const options = { name: 'nöise.wav', resumable: true, signal: controller.signal, idempotencyKey };
    await assert.rejects(clientOf(server).uploads.create(new Uint8Array(100), options), /enough/);
    const want = idempotencyKey === undefined ? 1 : 0;
    for (let waited = 0; server.state.deletes < want && waited < 5000; waited += 50) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.equal(server.state.deletes, want);
  }
});

test('a refused file is an error at once', async (t) => {
  const server = await startTusServer(t, (_part, _state, _seen, _accept, response) => {
    refuse(response, 415, 'UNSUPPORTED_MEDIA_TYPE');
  });
  const options = { name: 'nöise.wav', resumable: true };
  await assert.rejects(clientOf(server).uploads.create(new Uint8Array(100), options), {
    code: 'UNSUPPORTED_MEDIA_TYPE',
  });
  assert.equal(server.state.parts, 1);
});

/** serveFile serves a file in pieces of at most some bytes before it cuts the connection. */
function serveFile(file, cut, isRanged = true) {
  return (seen, response, request) => {
    assert.equal(seen.headers.authorization, undefined);
    const from = isRanged ? Number(/bytes=(\d+)-/.exec(seen.headers.range ?? '')?.[1] ?? 0) : 0;
    const headers = {
      'Content-Length': String(file.length - from),
      'Content-Range': `bytes ${from}-${file.length - 1}/${file.length}`,
    };
    response.writeHead(from > 0 ? 206 : 200, headers);
    const part = file.subarray(from, from + cut());
    response.write(part);
    return from + part.length < file.length ? setTimeout(() => request.socket.destroy(), 30) : response.end();
  };
}

test('a download that is cut goes on with a range, and its hash is checked', async (t) => {
  const file = randomBytes(9_000);
  const record = {
    size_bytes: file.length,
    sha256: createHash('sha256').update(file).digest('hex'),
    mime_type: 'image/png',
  };
  const server = await startServer(
    t,
    serveFile(file, () => 3_500),
  );
  const client = clientOf(server);
  const blob = await client.downloads.blob({ ...record, url: `${server.url}/media` });
  assert.ok(Buffer.from(await blob.arrayBuffer()).equals(file));
  assert.equal(blob.type, 'image/png');
  assert.deepEqual(
    server.requests.map((r) => r.headers.range),
    [undefined, 'bytes=3500-', 'bytes=7000-'],
  );

  // A server that knows no ranges sends everything again.
  let length = 2_000;
  const whole = await startServer(
    t,
    serveFile(
      file,
      () => {
        length *= 2;
        return length;
      },
      false,
    ),
  );
  const again = await clientOf(whole).downloads.blob({ ...record, url: `${whole.url}/media` });
  assert.ok(Buffer.from(await again.arrayBuffer()).equals(file));

  const wrong = { ...record, sha256: '0'.repeat(64), url: `${server.url}/media` };
  await assert.rejects(client.downloads.blob(wrong), { code: 'CHECKSUM_MISMATCH' });
  const shorter = { ...record, size_bytes: 8_999, url: `${server.url}/media` };
  await assert.rejects(client.downloads.blob(shorter), { code: 'CHECKSUM_MISMATCH' });
  await assert.rejects(new Response(client.downloads.stream(wrong)).arrayBuffer(), { code: 'CHECKSUM_MISMATCH' });
  await assert.rejects(client.downloads.blob({ ...record, url: null }), { code: 'NOT_FOUND' });
});

test('a download follows the service to its store, which never gets the credential', async (t) => {
  const file = randomBytes(9_000);
  const store = await startServer(
    t,
    serveFile(file, () => 5_000),
  );
  const server = await startServer(t, (_seen, response) => {
    response.writeHead(307, { Location: `${store.url}/bucket/a.png?X-Amz-Signature=1`, 'Cache-Control': 'no-store' });
    response.end();
  });
  const record = { size_bytes: file.length, sha256: createHash('sha256').update(file).digest('hex') };
  const client = clientOf(server, { token: 'atl_p_secret' });
  const blob = await client.downloads.blob({ ...record, url: `${server.url}/media/a.png` });
  assert.ok(Buffer.from(await blob.arrayBuffer()).equals(file));

  assert.deepEqual(
    store.requests.map((r) => r.headers.range),
    [undefined, 'bytes=5000-'],
  );
  for (const seen of [...server.requests, ...store.requests]) {
    assert.equal(seen.headers.authorization, undefined);
    assert.ok(!JSON.stringify(seen.headers).includes('atl_p_secret'));
  }
});

test('a call that is redirected to another server takes no credential there', async (t) => {
  const store = await startServer(t, (_seen, response) => answer(response, 200, {}));
  const server = await startServer(t, (_seen, response) => {
    response.writeHead(307, { Location: `${store.url}/api/v2/me` });
    response.end();
  });
  await clientOf(server, { token: 'atl_p_secret' }).me.get();
  assert.equal(server.requests[0].headers.authorization, 'Bearer atl_p_secret');
  assert.equal(store.requests.length, 1);
  assert.ok(store.requests.every((r) => r.headers.authorization === undefined));
});

test('a reader may take its time', async (t) => {
  const server = await startServer(t, (_seen, response) => {
    response.writeHead(200, { 'Content-Length': '6' });
    response.write('abc');
    setTimeout(() => response.end('def'), 50);
  });
  let text = '';
  const file = { url: `${server.url}/media`, size_bytes: 6 };
  for await (const piece of clientOf(server, { timeout: 0.2 }).downloads.pieces(file)) {
    text += Buffer.from(piece);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  assert.equal(text, 'abcdef');
  assert.equal(server.requests.length, 1);
});

test('wait follows events over breaks, with the id of the last event', async (t) => {
  const last = [];
  const streams = [
    (response, request) => {
      response.write(
        'id: 1\nevent: status\ndata: {"request_id":"r","status":"pending"}\n\nid: 2\nevent: progress\ndata: {"progress":0.5}\n\n',
      );
      setTimeout(() => request.socket.destroy(), 50);
    },
    (response) => response.end(': nothing new\n\n'),
    (response) => response.end('id: 9\nevent: done\ndata: {"request_id":"r","status":"succeeded","outputs":[]}\n\n'),
  ];
  const server = await startServer(t, (seen, response, request) => {
    if (!seen.path.endsWith('/events')) {
      return answer(response, 200, { request_id: 'r', status: 'pending', retry_after_seconds: 1 });
    }
    last.push(seen.headers['last-event-id']);
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    return takeFirst(streams)(response, request);
  });
  const events = [];
  const run = await clientOf(server).runs.wait('r', { onEvent: (e) => events.push(e.name) });
  assert.equal(run.status, 'succeeded');
  assert.deepEqual(last, [undefined, '2', '2']);
  assert.deepEqual(events, ['status', 'progress', 'done']);
});

test('a stream that is told to reconnect does so at once, and callers do not see it', async (t) => {
  // A node that stops ends its streams with this.
  const reconnect = 'retry: 100\n\nevent: reconnect\ndata: {"reason":"This node of the service stops."}\n\n';
  const status = 'id: 1\nevent: status\ndata: {"request_id":"r","status":"pending"}\n\n';
  const done = 'id: 9\nevent: done\ndata: {"request_id":"r","status":"succeeded","outputs":[]}\n\n';
  const startStopping = (lasts) => {
    let opened = 0;
    return startServer(t, (seen, response) => {
      if (!seen.path.endsWith('/events')) {
        return refuse(response, 500, 'INTERNAL');
      }
      opened++;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      if (opened % 2 === 0) {
        return response.end(done);
      }
      response.write(status);
      return setTimeout(() => response.end(reconnect), lasts);
    });
  };

  // The waits are so long that a test with one of them would not end.
  const server = await startStopping(4_000);
  const client = clientOf(server, { retry: { minWait: 1_000, maxWait: 1_000, maxTime: 10_000 } });
  const events = [];
  const run = await client.runs.wait('r', { onEvent: (e) => events.push(e.name) });
  assert.equal(run.status, 'succeeded');
  for await (const event of client.runs.events('r')) {
    events.push(event.name);
  }
  assert.deepEqual(events, ['status', 'done', 'status', 'done']);
  assert.deepEqual(
    server.requests.map((r) => r.headers['last-event-id']),
    [undefined, '1', undefined, '1'],
  );

  // A service that ends every stream right away is not asked without a pause.
  const hasty = await startStopping(0);
  const began = performance.now();
  for await (const event of clientOf(hasty, { retry: { minWait: 0.4, maxWait: 0.4 } }).runs.events('r')) {
    assert.notEqual(event.name, 'reconnect');
  }
  assert.ok(performance.now() - began >= 200);
});

test('streams of events connect again until the service says that there are no more', async (t) => {
  const streams = [
    (response) => response.writeHead(200).end('id: 4\nevent: board\ndata: {"revision":4}\n\n'),
    (response) => response.writeHead(200).end(),
    (response) => refuse(response, 503, 'UPSTREAM_UNAVAILABLE', { headers: { 'Retry-After': '0' } }),
    (response) => response.writeHead(200).end('id: 5\nevent: deleted\ndata: {"revision":5}\n\n'),
  ];
  const server = await startServer(t, (_seen, response) => takeFirst(streams)(response));
  const events = [];
  for await (const event of clientOf(server).boards.events('b')) {
    events.push(event.name);
  }
  assert.deepEqual(events, ['board', 'deleted']);
  const asked = server.requests.map((r) => r.headers['last-event-id']);
  assert.deepEqual(asked, [undefined, '4', '4', '4']);

  // A run that has ended has no more events (204); then its record tells the rest.
  const over = await startServer(t, (seen, response) => {
    return seen.path.endsWith('/events')
      ? response.writeHead(204).end()
      : answer(response, 200, { request_id: 'r', status: 'cancelled' });
  });
  assert.equal((await clientOf(over).runs.wait('r')).status, 'cancelled');
  assert.equal(over.requests.length, 2);
  assert.deepEqual(await clientOf(over).runs.events('r', { lastEventID: '9' }).next(), {
    done: true,
    value: undefined,
  });
});

test('wait polls where streams do not work, and gives up only after its patience', async (t) => {
  let polls = 0;
  const server = await startServer(t, (seen, response, request) => {
    if (seen.path.endsWith('/events')) {
      return request.socket.destroy();
    }
    polls++;
    if (polls === 2) {
      return request.socket.destroy();
    }
    return answer(response, 200, { request_id: 'r', status: polls > 2 ? 'failed' : 'pending', retry_after_seconds: 1 });
  });
  const run = await clientOf(server).runs.wait('r');
  assert.equal(run.status, 'failed');
  assert.equal(polls, 3);

  const gone = await startServer(t, (_seen, _response, request) => request.socket.destroy());
  await assert.rejects(clientOf(gone).runs.wait('r', { patience: 1 }), { code: 'NETWORK' });
  const unknown = await startServer(t, (_seen, response) => refuse(response, 404, 'NOT_FOUND'));
  await assert.rejects(clientOf(unknown).runs.wait('r'), { code: 'NOT_FOUND' });
  assert.equal(unknown.requests.length, 1);
});

test('run throws what went wrong, and reads a changed tool again', async (t) => {
  let hash = 'v1:a';
  const server = await startServer(t, (seen, response) => {
    switch (seen.path) {
      case '/tools/unknown':
        return refuse(response, 404, 'NOT_FOUND');
      case `/tools/${tool.id}`:
      case '/tools/gradient': {
        const detail = { ...tool, tool_fields_hash: hash };
        hash = 'v1:b';
        return answer(response, 200, detail);
      }
      case '/generate':
        return JSON.parse(seen.body).tool_fields_hash === 'v1:b'
          ? answer(response, 202, created)
          : refuse(response, 409, 'TOOL_SCHEMA_STALE');
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const run = { request_id: 'r', status: 'failed', error: { code: 'ENGINE', message: 'It broke.', retryable: true } };
    return response.end(`id: 1\nevent: done\ndata: ${JSON.stringify(run)}\n\n`);
  });
  const client = clientOf(server, { team_id: 'team' });
  await assert.rejects(client.run({ tool: 'gradient' }), (error) => {
    assert.equal(error.name, 'RunFailedError');
    assert.equal(error.code, 'ENGINE');
    assert.equal(error.run.request_id, 'r');
    return true;
  });
  assert.ok(server.requests.every((r) => r.query.get('team_id') === 'team'));
  await assert.rejects(client.run({ tool: 'unknown' }), { code: 'NOT_FOUND' });
});
