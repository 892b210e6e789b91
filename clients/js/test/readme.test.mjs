// Runs the examples of the README with the real program; see service.test.mjs.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import * as library from '../dist/node.js';
import { makeWAV } from './sound.mjs';

const { ATELIER_URL: baseURL, ATELIER_TOKEN: token } = process.env;
const options = baseURL && token ? {} : { skip: 'ATELIER_URL and ATELIER_TOKEN name no service' };
if (options.skip && process.env.CI) {
  throw new Error(options.skip);
}

test('the examples of the README run', options, async (t) => {
  const home = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), 'atelier-client-'));
  t.after(() => {
    process.chdir(home);
    rmSync(folder, { recursive: true, force: true });
  });
  const client = new library.Client({ baseURL, token });
  const run = await client.run({ tool: 'gradient', inputs: { size: { width: 64, height: 64 } } });
  process.chdir(folder);
  await client.download(run.outputs[0], 'photo.png');
  writeFileSync('concert.wav', makeWAV(9 << 20));

  const servers = [];
  const known = {
    ...library,
    client,
    run,
    console: { log() {} },
    createServer: (handler) => servers.push(createServer(handler)) && { listen() {} },
  };
  const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const examples = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map((match) => match[1]);
  let count = 0;
  for (const example of examples.filter((one) => !one.includes('signIn('))) {
    const names = Object.keys(known);
    const body = `return (async () => {\n${example.replace(/^import .*$/gm, '')}\n})();`;
    await new Function(...names, body)(...names.map((name) => known[name]));
    count++;
  }
  assert.equal(count, examples.length - 1);
  assert.equal(servers.length, 1);
  assert.equal(statSync('out/picture.png').size, run.outputs[0].size_bytes);
});
