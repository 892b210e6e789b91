import { AtelierError, readError } from './errors.js';
import { isPassing } from './events.js';
import { asFailure, Backoff, Deadline, sleep } from './retry.js';
import { type Hash, SHA256 } from './sha256.js';
import type { Transport } from './transport.js';

/** StoredFile is a file to download: an output of a run, an upload, or an item of the library. */
export interface StoredFile {
  url: string | null;
  size_bytes?: number;
  /** The expected hash; without it only the size is checked. */
  sha256?: string;
  mime_type?: string;
}

/** Progress says how much of a file was sent or received. */
export interface Progress {
  loaded: number;
  total: number;
}

/** DownloadOptions are the options of a download. */
export interface DownloadOptions {
  /** Cancels the download. */
  signal?: AbortSignal;
  /** Called after each piece. */
  onProgress?: (progress: Progress) => void;
}

/** Downloads reads the bytes of files. Their URLs need no credential, and none is sent. */
export class Downloads {
  constructor(
    private readonly transport: Transport,
    private readonly newHash: () => Hash = () => new SHA256(),
  ) {}

  /** blob downloads a file into memory, or wherever the browser keeps a Blob. */
  blob(file: StoredFile, options: DownloadOptions = {}): Promise<Blob> {
    return twiceIfDamaged(async () => {
      const pieces: Uint8Array<ArrayBuffer>[] = [];
      for await (const piece of this.pieces(file, options)) {
        pieces.push(piece);
      }
      return new Blob(pieces, { type: file.mime_type ?? '' });
    });
  }

  /** stream downloads a file as a stream, which fails at its end if the size or the hash is wrong. */
  stream(file: StoredFile, options: DownloadOptions = {}): ReadableStream<Uint8Array<ArrayBuffer>> {
    const pieces = this.pieces(file, options);
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) {
          controller.close();
        } else {
          controller.enqueue(value);
        }
      },
      async cancel() {
        await pieces.return(undefined);
      },
    });
  }

  /**
   * pieces yields the bytes of a file. A download that is cut continues with a Range where it stopped; it gives up when
   * nothing has arrived for the time of the client's retry limits.
   */
  async *pieces(file: StoredFile, options: DownloadOptions = {}): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    if (file.url === null) {
      throw new AtelierError({ code: 'NOT_FOUND', message: 'The file was deleted.' });
    }
    const { retry } = this.transport.parts;
    const total = file.size_bytes;
    const hash = this.newHash();
    let loaded = 0;
    let backoff = new Backoff(retry);

    for (;;) {
      const connection = this.readFrom(file.url, loaded, options.signal);
      let failure: AtelierError | undefined;
      try {
        for (;;) {
          // Only the connection is tried: what onProgress throws is the caller's.
          const next = await connection.next().catch((error) => asDownloadFailure(error, options.signal));
          if (next instanceof AtelierError) {
            failure = next;
            break;
          }
          if (next.done) {
            break;
          }
          loaded += next.value.length;
          hash.update(next.value);
          backoff = new Backoff(retry);
          options.onProgress?.({ loaded, total: total ?? loaded });
          yield next.value;
        }
      } finally {
        await connection.return(undefined);
      }
      if (failure === undefined && (total === undefined || loaded >= total)) {
        break;
      }

      failure ??= new AtelierError({ code: 'NETWORK', message: 'The download broke off.', retryable: true });
      const delay = isPassing(failure) ? backoff.delayAfter(failure) : undefined;
      if (delay === undefined) {
        throw failure;
      }
      await sleep(delay, options.signal);
    }
    checkFile(file, loaded, hash);
  }

  /** readFrom yields the bytes of a file from an offset, of one connection. */
  private async *readFrom(url: string, offset: number, signal?: AbortSignal): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const deadline = new Deadline(this.transport.parts.timeout, signal);
    let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
    try {
      const headers: Record<string, string> = offset > 0 ? { Range: `bytes=${offset}-` } : {};
      const response = await this.transport.parts.fetch(url, { headers, signal: deadline.signal });
      if (!response.ok) {
        throw await readError(response);
      }
      // A server may answer with the whole file instead of the rest.
      let skip = offset - (response.status === 206 ? rangeStart(response, offset) : 0);
      if (skip < 0) {
        throw new AtelierError({ code: 'BAD_RESPONSE', message: 'The answer is not the requested part of the file.' });
      }

      reader = response.body?.getReader();
      while (reader !== undefined) {
        const { done, value } = await reader.read();
        if (done) {
          return;
        }
        deadline.pause();
        if (skip < value.length) {
          yield value.subarray(skip);
        }
        skip = Math.max(0, skip - value.length);
        deadline.extend();
      }
    } catch (error) {
      throw deadline.signal.aborted ? deadline.signal.reason : error;
    } finally {
      deadline.end();
      reader?.cancel().catch(() => {});
    }
  }
}

function asDownloadFailure(error: unknown, signal: AbortSignal | undefined): AtelierError {
  signal?.throwIfAborted();
  return asFailure(error);
}

/** twiceIfDamaged downloads a file once more if its hash is wrong: it may have been damaged on its way. */
export async function twiceIfDamaged<T>(download: () => Promise<T>): Promise<T> {
  try {
    return await download();
  } catch (error) {
    if (!(error instanceof AtelierError) || error.code !== 'CHECKSUM_MISMATCH') {
      throw error;
    }
    return await download();
  }
}

/** rangeStart returns the offset of a partial answer. Pages of other origins cannot read it, and get what they asked for. */
function rangeStart(response: Response, asked: number): number {
  const match = /^bytes (\d+)-/.exec(response.headers.get('Content-Range') ?? '');
  return match === null ? asked : Number(match[1]);
}

function checkFile(file: StoredFile, loaded: number, hash: Hash): void {
  if (file.size_bytes !== undefined && loaded !== file.size_bytes) {
    const message = `The file has ${loaded} bytes, not ${file.size_bytes}.`;
    throw new AtelierError({ code: 'CHECKSUM_MISMATCH', message });
  }
  if (file.sha256 !== undefined && hash.hex() !== file.sha256) {
    throw new AtelierError({ code: 'CHECKSUM_MISMATCH', message: 'The hash of the downloaded file is wrong.' });
  }
}
