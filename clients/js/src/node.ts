/**
 * The client of Atelier's API with files, for Node: everything of `atelier-client`, a token store in a file, uploads from
 * paths, downloads to paths, and a webhook handler for `node:http`.
 *
 * @packageDocumentation
 */
import { createHash, randomBytes } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { type FileHandle, link, mkdir, open, readFile, rename, rm, stat, unlink, utimes } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { Client as BaseClient, type ClientOptions } from './client.js';
import type { CredentialSource, TokenStore, Tokens } from './credentials.js';
import { type DownloadOptions, type StoredFile, twiceIfDamaged } from './downloads.js';
import { AtelierError } from './errors.js';
import { sleep } from './retry.js';
import type { Hash } from './sha256.js';
import type { Upload, UploadOptions } from './uploads.js';
import { answerWebhook, type WebhookHandlerOptions } from './webhooks.js';

export * from './index.js';

/** Client is the client with Node's own hash for downloads, and with calls for paths. */
export class Client extends BaseClient {
  constructor(options: ClientOptions, credentials?: CredentialSource) {
    super({ newHash: () => new NodeHash(), ...options }, credentials);
  }

  /** uploadFile uploads the file at a path; see `uploads.create`. */
  async uploadFile(path: string, options: UploadOptions = {}): Promise<Upload> {
    return await this.uploads.create(await openFile(path), options);
  }

  /**
   * download downloads a file to a path. The bytes go to a file with a temporary name beside it, which gets the name only
   * when its size and hash are right; a file that was there stays until then.
   */
  async download(file: StoredFile, path: string, options: DownloadOptions = {}): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await twiceIfDamaged(() =>
      replaceFile(path, `.${basename(path)}`, 'part', 0o666, async (handle) => {
        for await (const piece of this.downloads.pieces(file, options)) {
          await writeAll(handle, piece);
        }
      }),
    );
  }
}

class NodeHash implements Hash {
  private readonly hash = createHash('sha256');

  update(bytes: Uint8Array): void {
    this.hash.update(bytes);
  }

  hex(): string {
    return this.hash.digest('hex');
  }
}

/** openFile returns the file at a path, for inputs of runs and for uploads. Its bytes are read when they are sent. */
export async function openFile(path: string): Promise<Blob & { name: string }> {
  return Object.assign(await openAsBlob(path), { name: basename(path) });
}

/** replaceFile writes a file under a temporary name beside its path, and renames it when all of it is on the disk. */
async function replaceFile(
  path: string,
  prefix: string,
  suffix: string,
  mode: number,
  write: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const temporary = join(dirname(path), `${prefix}.${randomBytes(6).toString('hex')}.${suffix}`);
  try {
    const handle = await open(temporary, 'wx', mode);
    try {
      await write(handle);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at);
    at += bytesWritten;
  }
}

const staleAfter = 30;
const touchEvery = 5;

/**
 * FileStore keeps tokens in a file that only its owner can read. The file is replaced atomically, and a lock file
 * beside it keeps two processes from refreshing at once; a lock that was not touched for 30 seconds counts as left behind.
 */
export class FileStore implements TokenStore {
  private readonly lockPath: string;

  constructor(private readonly path: string) {
    this.lockPath = `${path}.lock`;
  }

  async load(): Promise<Tokens | undefined> {
    let text: string;
    try {
      text = await readFile(this.path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
        return undefined;
      }
      throw error;
    }
    const tokens = parseTokens(text);
    if (tokens === undefined) {
      throw new AtelierError({ code: 'UNAUTHENTICATED', message: `${this.path} has no valid tokens.` });
    }
    return tokens;
  }

  async save(tokens: Tokens | undefined): Promise<void> {
    if (tokens === undefined) {
      await rm(this.path, { force: true });
      return;
    }
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    await replaceFile(this.path, basename(this.path), 'tmp', 0o600, async (handle) => {
      await handle.writeFile(`${JSON.stringify(tokens, null, 2)}\n`);
    });
  }

  async lock<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const mark = randomBytes(12).toString('hex');
    await this.acquire(mark, signal);
    const timer = setInterval(() => {
      const now = new Date();
      utimes(this.lockPath, now, now).catch(() => {});
    }, touchEvery * 1000);
    timer.unref();
    try {
      return await work();
    } finally {
      clearInterval(timer);
      await this.release(mark);
    }
  }

  private async acquire(mark: string, signal?: AbortSignal): Promise<void> {
    await mkdir(dirname(this.lockPath), { recursive: true, mode: 0o700 });
    for (;;) {
      try {
        const handle = await open(this.lockPath, 'wx', 0o600);
        await handle.writeFile(mark).finally(() => handle.close());
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
          throw error;
        }
      }
      await this.removeStaleLock();
      await sleep(0.05 + Math.random() * 0.1, signal);
    }
  }

  /**
   * removeStaleLock moves a stale lock aside before it removes it. Another process may have replaced the lock since we
   * looked at it; then the moved file is fresh, and goes back unless there is a newer one already.
   */
  private async removeStaleLock(): Promise<void> {
    if (!(await isStale(this.lockPath))) {
      return;
    }
    const aside = `${this.lockPath}.${randomBytes(6).toString('hex')}`;
    try {
      await rename(this.lockPath, aside);
    } catch {
      return;
    }
    if (!(await isStale(aside))) {
      await link(aside, this.lockPath).catch(() => {});
    }
    await rm(aside, { force: true });
  }

  private async release(mark: string): Promise<void> {
    // A process that slept for long may have lost its lock to another one.
    const text = await readFile(this.lockPath, 'utf8').catch(() => '');
    if (text === mark) {
      await unlink(this.lockPath).catch(() => {});
    }
  }
}

async function isStale(path: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs > staleAfter * 1000;
  } catch {
    return false;
  }
}

function parseTokens(text: string): Tokens | undefined {
  try {
    const value = JSON.parse(text);
    const isWhole = typeof value.id_token === 'string' && typeof value.refresh_token === 'string';
    return isWhole && typeof value.expires_at === 'number' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** nodeWebhookHandler returns a handler for `node:http` and Express. No other code may read the body first. */
export function nodeWebhookHandler(
  options: WebhookHandlerOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    try {
      const { status, text } = await answerWebhook(request.method ?? '', request.headers, request, options);
      response.writeHead(status, text === undefined ? {} : { 'Content-Type': 'text/plain; charset=utf-8' });
      response.end(text);
    } catch {
      response.writeHead(500).end();
    }
  };
}
