import type { components } from './schema.js';
/** ErrorCode is a code of the service, or one of this client's own. */
export type ErrorCode = components['schemas']['ErrorCode'] | 'NETWORK' | 'TIMEOUT' | 'BAD_RESPONSE' | 'CHECKSUM_MISMATCH' | 'WEBHOOK_INVALID' | (string & {});
/** ErrorFields are the members of an AtelierError. */
export interface ErrorFields {
    code: ErrorCode;
    message: string;
    status?: number;
    retryable?: boolean;
    details?: Record<string, unknown>;
    trace_id?: string;
    retry_after?: number;
    cause?: unknown;
}
/**
 * AtelierError is every failure of a call, except that an aborted signal throws its own reason. Act on `code`, show
 * `message`, and quote `trace_id` when you ask for help.
 */
export declare class AtelierError extends Error {
    name: string;
    /** The code for programs. */
    readonly code: ErrorCode;
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number;
    /** Whether the same call can succeed later. */
    readonly retryable: boolean;
    /** Details for programs, by code; `INVALID_REQUEST` has `fields`. */
    readonly details: Record<string, unknown>;
    /** The id of the request in the service's logs; empty if there was no answer. */
    readonly trace_id: string;
    /** Seconds to wait before the next attempt; undefined if the service named none. */
    readonly retry_after: number | undefined;
    constructor(fields: ErrorFields);
}
/** RunFailedError says that a run has failed or was cancelled. */
export declare class RunFailedError extends AtelierError {
    name: string;
    /** The run as it ended. */
    readonly run: components['schemas']['Generation'];
    constructor(run: components['schemas']['Generation']);
}
/** readError turns an answer that is not a success into an error. It consumes the body. */
export declare function readError(response: Response): Promise<AtelierError>;
/** parseRetryAfter reads the header in both of its forms, seconds and a date (RFC 9110, section 10.2.3). */
export declare function parseRetryAfter(value: string | null, now?: number): number | undefined;
