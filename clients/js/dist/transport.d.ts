import type { CredentialSource } from './credentials.js';
import { rules } from './operations.js';
import { Deadline, type RetryLimits } from './retry.js';
import type { operations } from './schema.js';
/** Fetch is the function that sends requests, such as `globalThis.fetch`. */
export type Fetch = (input: string, init: RequestInit) => Promise<Response>;
/** CallOptions are the last argument of every call. */
export interface CallOptions {
    /** Cancels the call and its retries. */
    signal?: AbortSignal;
    /** The team to act for, instead of the client's; '' means the personal account. */
    team_id?: string;
}
/** CreateOptions are the last argument of calls that never happen twice. */
export interface CreateOptions extends CallOptions {
    /** The idempotency key; a random one if absent. All retries send the same key. */
    idempotencyKey?: string;
}
/** Operation is the id of an operation in the API's document. */
export type Operation = keyof typeof rules & keyof operations;
/** Query has the query parameters of an operation. */
export type Query<O extends Operation> = Omit<NonNullable<operations[O] extends {
    parameters: {
        query?: infer Q;
    };
} ? Q : never>, 'team_id' | 'cursor' | 'format'>;
/** Body is the JSON body of an operation. */
export type Body<O extends Operation> = NonNullable<operations[O]['requestBody']> extends {
    content: {
        'application/json': infer B;
    };
} ? B : undefined;
type Responses<O extends Operation> = operations[O]['responses'];
type Success<O extends Operation> = Responses<O>[keyof Responses<O> & (200 | 201 | 202)];
/** Result is the JSON answer of an operation; undefined if the answer has no body. */
export type Result<O extends Operation> = [Success<O>] extends [never] ? undefined : Success<O> extends {
    content: {
        'application/json': infer R;
    };
} ? R : undefined;
/** Request describes one call of the API. */
export interface Request {
    path?: Record<string, string>;
    query?: object;
    headers?: Record<string, string>;
    /** A value to send as JSON. */
    json?: unknown;
    /** The body, if it is not JSON. It must be possible to send it again. */
    body?: Blob | FormData;
    /** Seconds without an answer after which an attempt has failed; the client's timeout if absent. */
    timeout?: number;
    /** Limits of the retries, instead of the client's. */
    retry?: RetryLimits;
    options?: CreateOptions;
}
/** TransportParts are what a Transport needs. */
export interface TransportParts {
    baseURL: string;
    credentials: CredentialSource | undefined;
    team_id: string;
    fetch: Fetch;
    retry: RetryLimits;
    timeout: number;
}
/** Transport sends requests to one service, and repeats them where that does no harm. */
export declare class Transport {
    readonly parts: TransportParts;
    constructor(parts: TransportParts);
    /** call calls an operation and returns its JSON answer. */
    call<O extends Operation>(operation: O, request?: Request): Promise<Result<O>>;
    /**
     * send sends a request until read has returned a value. An answer that breaks off is a network error, so read belongs to
     * the attempt. A deletion whose first answer was lost has succeeded if there is nothing to delete any more.
     */
    send<T>(operation: Operation, request: Request, read: (response: Response) => Promise<T>): Promise<T>;
    /** open sends a request once and returns the answer unread, with the deadline that its reader extends and ends. */
    open(operation: Operation, request: Request): Promise<{
        response: Response;
        deadline: Deadline;
    }>;
    private attempt;
    private renew;
    private address;
    private headers;
}
/** randomKey returns a random idempotency key. crypto.randomUUID is missing on pages that were loaded without TLS. */
export declare function randomKey(): string;
export {};
