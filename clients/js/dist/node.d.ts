import type { IncomingMessage, ServerResponse } from 'node:http';
import { Client as BaseClient, type ClientOptions } from './client.js';
import type { CredentialSource, TokenStore, Tokens } from './credentials.js';
import { type DownloadOptions, type StoredFile } from './downloads.js';
import type { Upload, UploadOptions } from './uploads.js';
import { type WebhookHandlerOptions } from './webhooks.js';
export * from './index.js';
/** Client is the client with Node's own hash for downloads, and with calls for paths. */
export declare class Client extends BaseClient {
    constructor(options: ClientOptions, credentials?: CredentialSource);
    /** uploadFile uploads the file at a path; see `uploads.create`. */
    uploadFile(path: string, options?: UploadOptions): Promise<Upload>;
    /**
     * download downloads a file to a path. The bytes go to a file with a temporary name beside it, which gets the name only
     * when its size and hash are right; a file that was there stays until then.
     */
    download(file: StoredFile, path: string, options?: DownloadOptions): Promise<void>;
}
/** openFile returns the file at a path, for inputs of runs and for uploads. Its bytes are read when they are sent. */
export declare function openFile(path: string): Promise<Blob & {
    name: string;
}>;
/**
 * FileStore keeps tokens in a file that only its owner can read. The file is replaced atomically, and a lock file
 * beside it keeps two processes from refreshing at once; a lock that was not touched for 30 seconds counts as left behind.
 */
export declare class FileStore implements TokenStore {
    private readonly path;
    private readonly lockPath;
    constructor(path: string);
    load(): Promise<Tokens | undefined>;
    save(tokens: Tokens | undefined): Promise<void>;
    lock<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
    private acquire;
    /**
     * removeStaleLock moves a stale lock aside before it removes it. Another process may have replaced the lock since we
     * looked at it; then the moved file is fresh, and goes back unless there is a newer one already.
     */
    private removeStaleLock;
    private release;
}
/** nodeWebhookHandler returns a handler for `node:http` and Express. No other code may read the body first. */
export declare function nodeWebhookHandler(options: WebhookHandlerOptions): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
