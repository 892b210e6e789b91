import type { DownloadOptions } from './downloads.js';
import { Pages } from './pages.js';
import type { components } from './schema.js';
import { type CallOptions, type CreateOptions, type Query, type Transport } from './transport.js';
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
/** Uploads are files of people, as inputs of runs. */
export declare class Uploads {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists the account's uploads, the newest first. */
    list(query?: Query<'listUploads'>, options?: CallOptions): Pages<Upload>;
    /** get reads one upload. */
    get(upload_id: string, options?: CallOptions): Promise<Upload>;
    /** delete deletes an upload. */
    delete(upload_id: string, options?: CallOptions): Promise<undefined>;
    /**
     * create uploads a file. A file of 8 MiB or more is sent in parts with the tus protocol: after a failure the client asks
     * the service how much has arrived, and goes on from there. The same `idempotencyKey` continues an unfinished upload of
     * an earlier process. A smaller file is sent in one request; if its answer is lost the file is sent again, and a second
     * copy of it may stay in the account.
     */
    create(source: FileSource, options?: UploadOptions): Promise<Upload>;
    private createResumable;
    private sendParts;
    /** startParts announces a file and fills in its path. An upload that an earlier call began may have bytes already. */
    private startParts;
    /** sendPart sends one part, once: whether it arrived is asked with HEAD. */
    private sendPart;
    /** readState asks how much of a file has arrived. */
    private readState;
    /** abandon frees the storage of an unfinished upload, if that works at once. */
    private abandon;
    private timeoutFor;
}
/** asBlob makes a Blob from any source, without copying a Blob. */
export declare function asBlob(source: FileSource): Blob;
