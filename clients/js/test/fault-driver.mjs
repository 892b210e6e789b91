// Works through a proxy that disturbs every request, for TestFaults in test/clients. It uploads a large file, creates
// ATELIER_CREATES runs, waits for them, downloads their outputs, and prints one JSON line for each run.
import { join } from 'node:path';
import { Client, FileStore, uploadInput } from '../dist/node.js';

const env = process.env;
const count = Number(env.ATELIER_CREATES);
const atOnce = 8;
const client = new Client({
  baseURL: env.ATELIER_URL,
  store: new FileStore(env.ATELIER_TOKENS),
  timeout: 20,
  retry: { attempts: 60, maxTime: 300, maxWait: 3 },
});

async function makePicture(index) {
  if (index % 20 !== 0) {
    return await client.runs.create({ tool: 'gradient', inputs: { seed: index, size: { width: 256, height: 256 } } });
  }
  const upload = await client.uploadFile(env.ATELIER_FILE_SMALL);
  const inputs = { picture: uploadInput(upload), size: { width: 32, height: 32 } };
  return await client.runs.create({ tool: 'resize', inputs });
}

async function workOn(index) {
  const run = await client.runs.wait(await makePicture(index));
  if (run.status !== 'succeeded') {
    throw new Error(`run ${index} ended as ${run.status}: ${run.error?.message}`);
  }
  const files = [];
  for (const [number, output] of run.outputs.entries()) {
    const path = join(env.ATELIER_OUT, `${index}-${number}`);
    await client.download(output, path);
    files.push({ path, sha256: output.sha256 });
  }
  console.log(JSON.stringify({ index, request_id: run.request_id, files }));
}

let next = 0;
async function workOnNext() {
  while (next < count) {
    await workOn(next++);
  }
}

await Promise.all([
  client.uploadFile(env.ATELIER_FILE, { resumable: true }),
  ...Array.from({ length: atOnce }, workOnNext),
]);
