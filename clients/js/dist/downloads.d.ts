import { type Hash } from './sha256.js';
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
export declare class Downloads {
    private readonly transport;
    private readonly newHash;
    constructor(transport: Transport, newHash?: () => Hash);
    /** blob downloads a file into memory, or wherever the browser keeps a Blob. */
    blob(file: StoredFile, options?: DownloadOptions): Promise<Blob>;
    /** stream downloads a file as a stream, which fails at its end if the size or the hash is wrong. */
    stream(file: StoredFile, options?: DownloadOptions): ReadableStream<Uint8Array<ArrayBuffer>>;
    /**
     * pieces yields the bytes of a file. A download that is cut continues with a Range where it stopped; it gives up when
     * nothing has arrived for the time of the client's retry limits.
     */
    pieces(file: StoredFile, options?: DownloadOptions): AsyncGenerator<Uint8Array<ArrayBuffer>>;
    /** readFrom yields the bytes of a file from an offset, of one connection. */
    private readFrom;
}
/** twiceIfDamaged downloads a file once more if its hash is wrong: it may have been damaged on its way. */
export declare function twiceIfDamaged<T>(download: () => Promise<T>): Promise<T>;
