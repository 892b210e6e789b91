import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client, FileStore } from '../dist/node.js';
import { answer, makeTokens, startServer } from './local-server.mjs';

function makeFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'atelier-client-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('tokens are kept in a file for their owner only', async (t) => {
  const path = join(makeFolder(t), 'deep', 'tokens.json');
  const store = new FileStore(path);
  assert.equal(await store.load(), undefined);
  const tokens = { ...makeTokens('a', 60), device_id: 'd' };
  await store.save(tokens);
  assert.deepEqual(await store.load(), tokens);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(join(path, '..')), ['tokens.json']);
  writeFileSync(path, '{"id_token": 1}');
  await assert.rejects(store.load(), { code: 'UNAUTHENTICATED' });
  await store.save(undefined);
  assert.equal(await store.load(), undefined);
});

test('one holds the lock at a time, and a lock that was left behind is taken over', async (t) => {
  const path = join(makeFolder(t), 'tokens.json');
  let holders = 0;
  let rounds = 0;
  const work = async () => {
    assert.equal(++holders, 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    holders--;
    rounds++;
  };
  await Promise.all(Array.from({ length: 8 }, () => new FileStore(path).lock(work)));
  assert.equal(rounds, 8);
  assert.equal(existsSync(`${path}.lock`), false);

  writeFileSync(`${path}.lock`, 'somebody');
  const signal = AbortSignal.timeout(500);
  await assert.rejects(new FileStore(path).lock(work, signal), { name: 'TimeoutError' });
  const longAgo = new Date(Date.now() - 31_000);
  utimesSync(`${path}.lock`, longAgo, longAgo);
  await Promise.all(Array.from({ length: 8 }, () => new FileStore(path).lock(work)));
  assert.equal(rounds, 16);
  assert.deepEqual(readdirSync(join(path, '..')), []);
});

test('two processes refresh the same tokens once', async (t) => {
  let refreshes = 0;
  const server = await startServer(t, async (seen, response) => {
    if (seen.path === '/auth/token/refresh') {
      refreshes++;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return answer(response, 200, makeTokens('new', 3600));
    }
    return answer(response, 200, { isNew: seen.headers.authorization.endsWith('.new') });
  });
  const path = join(makeFolder(t), 'tokens.json');
  await new FileStore(path).save(makeTokens('old', 0));
  const program = `
    import { Client, FileStore } from ${JSON.stringify(new URL('../dist/node.js', import.meta.url).href)};
    const client = new Client({ baseURL: process.argv[1], store: new FileStore(process.argv[2]) });
    const answers = await Promise.all([1, 2, 3].map(() => client.me.get()));
    process.exitCode = answers.every((a) => a.isNew) ? 0 : 1;`;
  const children = Array.from({ length: 3 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program, server.url, path], { stdio: 'inherit' }),
  );
  const codes = await Promise.all(children.map((child) => once(child, 'exit')));
  assert.deepEqual(
    codes.map(([code]) => code),
    [0, 0, 0],
  );
  assert.equal(refreshes, 1);
});

test('a download has its name only when it is whole', async (t) => {
  const file = randomBytes(50_000);
  const sha256 = createHash('sha256').update(file).digest('hex');
  const folder = makeFolder(t);
  let cuts = 0;
  const names = [];
  const server = await startServer(t, (seen, response, request) => {
    const from = Number(/bytes=(\d+)-/.exec(seen.headers.range ?? '')?.[1] ?? 0);
    response.writeHead(from > 0 ? 206 : 200, {
      'Content-Length': String(file.length - from),
      'Content-Range': `bytes ${from}-49999/50000`,
    });
    response.write(file.subarray(from, from + 30_000));
    if (from === 0) {
      cuts++;
      names.push(...readdirSync(join(folder, 'out')));
      return setTimeout(() => request.socket.destroy(), 30);
    }
    return response.end();
  });
  const client = new Client({ baseURL: server.url, token: 't' });
  const progress = [];
  const output = { url: `${server.url}/media`, size_bytes: file.length, sha256 };
  await client.download(output, join(folder, 'out', 'a.png'), { onProgress: (p) => progress.push(p) });
  assert.ok(readFileSync(join(folder, 'out', 'a.png')).equals(file));
  assert.equal(cuts, 1);
  assert.match(names.join(), /^\.a\.png\.\w+\.part$/);
  assert.deepEqual(progress.at(-1), { loaded: 50_000, total: 50_000 });

  const wrong = { ...output, sha256: '0'.repeat(64) };
  await assert.rejects(client.download(wrong, join(folder, 'out', 'b.png')), { code: 'CHECKSUM_MISMATCH' });
  assert.deepEqual(readdirSync(join(folder, 'out')), ['a.png']);
});

test('npm installs the folder as it is', (t) => {
  const folder = makeFolder(t);
  const source = fileURLToPath(new URL('..', import.meta.url));
  writeFileSync(join(folder, 'package.json'), '{"name": "user", "private": true, "type": "module"}');
  const npm = ['install', '--offline', '--no-audit', '--no-fund', '--install-links', '--omit=dev', source];
  try {
    execFileSync('npm', npm, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    if (error.code === 'ENOENT' && !process.env.CI) {
      t.skip('npm is not installed (Debian: apt-get install npm)');
      return;
    }
    throw error;
  }
  const program = `
    import { Client } from 'atelier-client';
    import { Client as NodeClient, FileStore } from 'atelier-client/node';
    new Client({ baseURL: 'http://localhost' });
    new NodeClient({ baseURL: 'http://localhost', store: new FileStore('x') });
    console.log('works');`;
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: folder });
  assert.equal(String(out).trim(), 'works');
  const installed = readdirSync(join(folder, 'node_modules', 'atelier-client')).sort();
  assert.deepEqual(installed, ['README.md', 'dist', 'package.json']);
});
