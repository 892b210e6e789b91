import type { CredentialSource } from './credentials.js';
import { type AtelierError, readError } from './errors.js';
import { type Rule, rules } from './operations.js';
import { asFailure, Backoff, Deadline, type RetryLimits, sleep, wasNotSent } from './retry.js';
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
export type Query<O extends Operation> = Omit<
  NonNullable<operations[O] extends { parameters: { query?: infer Q } } ? Q : never>,
  'team_id' | 'cursor' | 'format'
>;

/** Body is the JSON body of an operation. */
export type Body<O extends Operation> =
  NonNullable<operations[O]['requestBody']> extends {
    content: { 'application/json': infer B };
  }
    ? B
    : undefined;

type Responses<O extends Operation> = operations[O]['responses'];
type Success<O extends Operation> = Responses<O>[keyof Responses<O> & (200 | 201 | 202)];

/** Result is the JSON answer of an operation; undefined if the answer has no body. */
export type Result<O extends Operation> = [Success<O>] extends [never]
  ? undefined
  : Success<O> extends { content: { 'application/json': infer R } }
    ? R
    : undefined;

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
export class Transport {
  constructor(readonly parts: TransportParts) {}

  /** call calls an operation and returns its JSON answer. */
  call<O extends Operation>(operation: O, request: Request = {}): Promise<Result<O>> {
    return this.send(operation, request, async (response) => {
      if (response.status === 204) {
        return undefined as Result<O>;
      }
      return (await response.json()) as Result<O>;
    });
  }

  /**
   * send sends a request until read has returned a value. An answer that breaks off is a network error, so read belongs to
   * the attempt. A deletion whose first answer was lost has succeeded if there is nothing to delete any more.
   */
  async send<T>(operation: Operation, request: Request, read: (response: Response) => Promise<T>): Promise<T> {
    const rule: Rule = rules[operation];
    const { method } = rule;
    const url = this.address(rule, request);
    const headers = this.headers(rule, request);
    const signal = request.options?.signal;
    const backoff = new Backoff(request.retry ?? this.parts.retry);
    let isRenewed = false;
    let mayBeDone = false;

    for (;;) {
      signal?.throwIfAborted();
      const token = rule.isPublic ? undefined : await this.parts.credentials?.token(signal);
      let failure: AtelierError;
      try {
        return await this.attempt(url, { method, headers, body: bodyOf(request) }, token, request, read);
      } catch (error) {
        signal?.throwIfAborted();
        failure = asFailure(error);
      }

      if (failure.status === 401 && token !== undefined && !isRenewed && (await this.renew(token, signal))) {
        isRenewed = true;
        continue;
      }
      if (method === 'DELETE' && failure.status === 404 && mayBeDone) {
        return undefined as T;
      }
      mayBeDone ||= failure.status >= 500 || (failure.status === 0 && !wasNotSent(failure));
      const delay = mayRepeat(failure, rule.isSafe === true) ? backoff.delayAfter(failure) : undefined;
      if (delay === undefined) {
        throw failure;
      }
      await sleep(delay, signal);
    }
  }

  /** open sends a request once and returns the answer unread, with the deadline that its reader extends and ends. */
  async open(operation: Operation, request: Request): Promise<{ response: Response; deadline: Deadline }> {
    const rule: Rule = rules[operation];
    const signal = request.options?.signal;
    const deadline = new Deadline(request.timeout ?? this.parts.timeout, signal);

    try {
      for (let isRenewed = false; ; isRenewed = true) {
        const token = await this.parts.credentials?.token(signal);
        const headers = withToken(this.headers(rule, request), token);
        const init = { method: rule.method, headers, signal: deadline.signal };
        const response = await this.parts.fetch(this.address(rule, request), init);
        if (response.ok) {
          return { response, deadline };
        }
        const failure = await readError(response);
        if (failure.status !== 401 || token === undefined || isRenewed || !(await this.renew(token, signal))) {
          throw failure;
        }
      }
    } catch (error) {
      deadline.end();
      signal?.throwIfAborted();
      throw asFailure(deadline.signal.aborted ? deadline.signal.reason : error);
    }
  }

  private async attempt<T>(
    url: string,
    init: RequestInit & { headers: Record<string, string> },
    token: string | undefined,
    request: Request,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const deadline = new Deadline(request.timeout ?? this.parts.timeout, request.options?.signal);
    try {
      const headers = withToken(init.headers, token);
      const response = await this.parts.fetch(url, { ...init, headers, signal: deadline.signal });
      if (!response.ok) {
        throw await readError(response);
      }
      return await read(response);
    } catch (error) {
      throw deadline.signal.aborted ? deadline.signal.reason : error;
    } finally {
      deadline.end();
    }
  }

  private async renew(token: string, signal: AbortSignal | undefined): Promise<boolean> {
    return (await this.parts.credentials?.renew(token, signal)) ?? false;
  }

  private address(rule: Rule, request: Request): string {
    const path = rule.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = request.path?.[name];
      // A URL with the segment ".." would be another one.
      if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) {
        throw new TypeError(`${name} must be an id`);
      }
      return encodeURIComponent(value);
    });
    const url = new URL(`${this.parts.baseURL}/api/v2${path}`);

    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined && value !== null && value !== '') {
        url.searchParams.set(name, Array.isArray(value) ? value.join(',') : String(value));
      }
    }
    const team = request.options?.team_id ?? this.parts.team_id;
    if (rule.hasAccount && team !== '') {
      url.searchParams.set('team_id', team);
    }

    return url.href;
  }

  private headers(rule: Rule, request: Request): Record<string, string> {
    const headers: Record<string, string> = { Accept: 'application/json', ...request.headers };
    if (request.json !== undefined) {
      headers['Content-Type'] = 'application/json';
    }
    if (rule.isKeyed) {
      headers['Idempotency-Key'] = request.options?.idempotencyKey ?? randomKey();
    }
    return headers;
  }
}

function bodyOf(request: Request): BodyInit | undefined {
  return request.json === undefined ? request.body : JSON.stringify(request.json);
}

function withToken(headers: Record<string, string>, token: string | undefined): Record<string, string> {
  return token === undefined ? headers : { ...headers, Authorization: `Bearer ${token}` };
}

/**
 * mayRepeat reports whether a failed request may be sent again. 408, 429 and 503 with Retry-After say that nothing was
 * done. Anything else may have happened although the answer is lost, so only safe requests are repeated.
 */
function mayRepeat(failure: AtelierError, isSafe: boolean): boolean {
  switch (failure.status) {
    case 0:
      return isSafe ? failure.code === 'NETWORK' || failure.code === 'TIMEOUT' : wasNotSent(failure);
    case 408:
    case 429:
      return true;
    case 409:
      // The first request with this key is still in progress.
      return isSafe && failure.retryable && failure.details.reason === 'in_flight';
    case 503:
      return isSafe || failure.retry_after !== undefined;
    default:
      return isSafe && failure.status >= 500;
  }
}

/** randomKey returns a random idempotency key. crypto.randomUUID is missing on pages that were loaded without TLS. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
