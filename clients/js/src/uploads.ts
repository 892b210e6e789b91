import type { DownloadOptions, Progress } from './downloads.js';
import { AtelierError } from './errors.js';
import { isPassing } from './events.js';
import { Pages } from './pages.js';
import { asFailure, Backoff, once, sleep } from './retry.js';
import type { components } from './schema.js';
import { type CallOptions, type CreateOptions, type Query, randomKey, type Transport } from './transport.js';

/** Upload is an uploaded file. */
export type Upload = components['schemas']['Upload'];

/** FileSource is a file to send. A `File` has a name; `openFile` of `atelier-client/node` makes one from a path. */
export type FileSource = Blob | ArrayBuffer | Uint8Array;

/** UploadOptions are the options of an upload. */
export interface UploadOptions extends CreateOptions {
  /** The name of the file; a `File` has its own. */
  name?: string;
  /** Whether to send the file in parts that survive failures. Default: from 8 MiB on. */
  resumable?: boolean;
  /** The bytes of one part. Default: 4 MiB. */
  partBytes?: number;
  /** Called at the start and after each part. */
  onProgress?: DownloadOptions['onProgress'];
}

const resumableFrom = 8 << 20;
const defaultPartBytes = 4 << 20;
/** The service wants 64 KiB a second at least. */
const slowestBytesPerSecond = 64 << 10;
const tus = { 'Tus-Resumable': '1.0.0' };

/** Uploads are files of people, as inputs of runs. */
export class Uploads {
  constructor(private readonly transport: Transport) {}

  /** list lists the account's uploads, the newest first. */
  list(query: Query<'listUploads'> = {}, options: CallOptions = {}): Pages<Upload> {
    return new Pages((cursor) => this.transport.call('listUploads', { query: { ...query, cursor }, options }));
  }

  /** get reads one upload. */
  get(upload_id: string, options: CallOptions = {}): Promise<Upload> {
    return this.transport.call('getUpload', { path: { upload_id }, options });
  }

  /** delete deletes an upload. */
  delete(upload_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteUpload', { path: { upload_id }, options });
  }

  /**
   * create uploads a file. A file of 8 MiB or more is sent in parts with the tus protocol: after a failure the client asks
   * the service how much has arrived, and goes on from there. The same `idempotencyKey` continues an unfinished upload of
   * an earlier process. A smaller file is sent in one request; if its answer is lost the file is sent again, and a second
   * copy of it may stay in the account.
   */
  async create(source: FileSource, options: UploadOptions = {}): Promise<Upload> {
    const blob = asBlob(source);
    const name = options.name ?? (blob as { name?: string }).name ?? 'file';
    if (options.resumable ?? blob.size >= resumableFrom) {
      return await this.createResumable(blob, name, options);
    }

    const progress = (loaded: number) => report(options, { loaded, total: blob.size });
    progress(0);
    const upload = await this.transport.call('createUpload', {
      query: { name },
      headers: { 'Content-Type': 'application/octet-stream' },
      body: blob,
      timeout: this.timeoutFor(blob.size),
      options,
    });
    progress(blob.size);
    return upload;
  }

  private async createResumable(blob: Blob, name: string, options: UploadOptions): Promise<Upload> {
    const path: PartPath = { resumable_id: '' };
    try {
      const idempotencyKey = options.idempotencyKey ?? randomKey();
      return await this.sendParts(path, blob, name, { ...options, idempotencyKey });
    } catch (error) {
      // Nobody can continue an upload whose key nobody knows; until it expires it would take up storage.
      if (options.idempotencyKey === undefined && path.resumable_id !== '') {
        this.abandon(path, options.team_id);
      }
      throw error;
    }
  }

  private async sendParts(path: PartPath, blob: Blob, name: string, options: UploadOptions): Promise<Upload> {
    const partBytes = Math.max(1, options.partBytes ?? defaultPartBytes);
    let backoff = new Backoff(this.transport.parts.retry);
    let state = await this.startParts(path, blob, name, options);
    report(options, { loaded: state.offset, total: blob.size });

    while (state.upload_id === '') {
      options.signal?.throwIfAborted();
      try {
        const part = blob.slice(state.offset, state.offset + partBytes);
        const next = await this.sendPart(path, part, state.offset, options);
        if (next.offset <= state.offset && next.upload_id === '') {
          throw new AtelierError({
            code: 'UPLOAD_OFFSET_CONFLICT',
            message: 'The part was not stored.',
            retryable: true,
          });
        }
        backoff = new Backoff(this.transport.parts.retry);
        state = next;
      } catch (error) {
        options.signal?.throwIfAborted();
        const failure = asFailure(error);
        // 409: the offset is another one. 423: an earlier part is still being stored.
        const isWorthAsking = isPassing(failure) || failure.code === 'UPLOAD_OFFSET_CONFLICT' || failure.status === 423;
        const delay = isWorthAsking ? backoff.delayAfter(failure) : undefined;
        if (delay === undefined) {
          throw failure;
        }
        await sleep(delay, options.signal);
        const before = state.offset;
        state = await this.readState(path, options);
        if (state.offset > before) {
          backoff = new Backoff(this.transport.parts.retry);
        }
      }
      report(options, { loaded: state.offset, total: blob.size });
    }

    return await this.get(state.upload_id, options);
  }

  /** startParts announces a file and fills in its path. An upload that an earlier call began may have bytes already. */
  private startParts(path: PartPath, blob: Blob, name: string, options: CreateOptions): Promise<PartState> {
    const request = {
      headers: { ...tus, 'Upload-Length': String(blob.size), 'Upload-Metadata': `filename ${encodeBase64(name)}` },
      options,
    };
    return this.transport.send('createResumableUpload', request, async (response) => {
      // Only the id is taken from the address, so that the credential goes to no other host.
      const location = new URL(response.headers.get('Location') ?? '', this.transport.parts.baseURL);
      path.resumable_id = decodeURIComponent(location.pathname.split('/').pop() ?? '');
      if (path.resumable_id === '') {
        throw new AtelierError({
          code: 'BAD_RESPONSE',
          message: 'The answer names no upload.',
          status: response.status,
        });
      }
      return readPartState(response);
    });
  }

  /** sendPart sends one part, once: whether it arrived is asked with HEAD. */
  private sendPart(path: PartPath, part: Blob, offset: number, options: CallOptions): Promise<PartState> {
    const request = {
      path,
      headers: { ...tus, 'Upload-Offset': String(offset), 'Content-Type': 'application/offset+octet-stream' },
      body: part,
      timeout: this.timeoutFor(part.size),
      retry: once,
      options,
    };
    return this.transport.send('appendResumableUpload', request, readPartState);
  }

  /** readState asks how much of a file has arrived. */
  private readState(path: PartPath, options: CallOptions): Promise<PartState> {
    return this.transport.send('getResumableUpload', { path, headers: tus, options }, readPartState);
  }

  /** abandon frees the storage of an unfinished upload, if that works at once. */
  private abandon(path: PartPath, team_id: string | undefined): void {
    const request = {
      path,
      headers: tus,
      timeout: 5,
      retry: once,
      options: { team_id },
    };
    this.transport.call('deleteResumableUpload', request).catch(() => {});
  }

  private timeoutFor(bytes: number): number {
    return this.transport.parts.timeout + bytes / slowestBytesPerSecond;
  }
}

/** PartPath names the upload to which parts belong; its id is empty until the service has given it. */
type PartPath = { resumable_id: string };

/** PartState says how much of a file has arrived, and names the upload once it is complete. */
interface PartState {
  offset: number;
  upload_id: string;
}

async function readPartState(response: Response): Promise<PartState> {
  const offset = Number(response.headers.get('Upload-Offset') ?? Number.NaN);
  if (!Number.isSafeInteger(offset)) {
    throw new AtelierError({
      code: 'BAD_RESPONSE',
      message: 'The answer does not say how much of the file has arrived.',
      status: response.status,
    });
  }
  return { offset, upload_id: response.headers.get('Upload-Id') ?? '' };
}

function report(options: UploadOptions, progress: Progress): void {
  options.onProgress?.(progress);
}

/** asBlob makes a Blob from any source, without copying a Blob. */
export function asBlob(source: FileSource): Blob {
  return source instanceof Blob ? source : new Blob([source as BlobPart]);
}

function encodeBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
