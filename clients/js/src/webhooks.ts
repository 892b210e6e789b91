import { AtelierError } from './errors.js';
import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { CallOptions, Query, Result, Transport } from './transport.js';

type Schemas = components['schemas'];

/** WebhookEvent is the body of a webhook: a run that has ended, or a budget of which a part is spent. */
export type WebhookEvent = Schemas['WebhookEvent'] | Schemas['BudgetEvent'];

/** VerifiedEvent is an event whose signature is right. The same event may arrive again, with the same id. */
export interface VerifiedEvent {
  id: string;
  event: WebhookEvent;
}

/** VerifyOptions are the secrets and the time for verifyWebhook. */
export interface VerifyOptions {
  /** The secret (`whsec_…`), or several: after a rotation the old one along with the new. */
  secret: string | string[];
  /** Seconds by which the time of the event may differ from now. Default: 300. */
  tolerance?: number;
  /** The current time in milliseconds, for tests. */
  now?: number;
}

/** HeaderSource has the headers of a request: a Headers object, or an object such as Node's `request.headers`. */
export type HeaderSource = Headers | Record<string, string | string[] | undefined>;

/**
 * verifyWebhook checks the signature of an event (Standard Webhooks 1.0.0) and returns the event. `body` is the raw body,
 * exactly as it arrived. It throws an AtelierError with the code `WEBHOOK_INVALID`.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeaderSource,
  options: VerifyOptions,
): Promise<VerifiedEvent> {
  const id = readHeader(headers, 'webhook-id');
  const timestamp = readHeader(headers, 'webhook-timestamp');
  const seconds = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
  const now = (options.now ?? Date.now()) / 1000;
  // A comparison with NaN is false, so a wrong timestamp is refused too.
  if (!(Math.abs(now - seconds) <= (options.tolerance ?? 300))) {
    throw invalid('The time of the webhook is missing, too old or in the future.');
  }

  const content = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + content.length);
  signed.set(prefix);
  signed.set(content, prefix.length);
  const signatures = readHeader(headers, 'webhook-signature')
    .split(' ')
    .filter((text) => text.startsWith('v1,'));
  if (id === '' || !(await matchesAny(signed, signatures, options.secret))) {
    throw invalid('The signature of the webhook is wrong.');
  }

  try {
    return { id, event: JSON.parse(new TextDecoder().decode(content)) };
  } catch (error) {
    throw invalid('The body of the webhook is not JSON.', error);
  }
}

/** matchesAny tries every secret with every signature. WebCrypto compares in constant time. */
async function matchesAny(
  signed: Uint8Array<ArrayBuffer>,
  signatures: string[],
  secrets: string | string[],
): Promise<boolean> {
  let isMatch = false;
  for (const secret of Array.isArray(secrets) ? secrets : [secrets]) {
    const bytes = decodeBase64(secret.replace(/^whsec_/, ''));
    if (bytes === undefined || bytes.length === 0) {
      throw new TypeError('a webhook secret is "whsec_" and a key in base64');
    }
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify']);
    // Nobody signs an event more than a few times.
    for (const text of signatures.slice(0, 8)) {
      const signature = decodeBase64(text.slice('v1,'.length));
      if (signature !== undefined && (await crypto.subtle.verify('HMAC', key, signature, signed))) {
        isMatch = true;
      }
    }
  }
  return isMatch;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function readHeader(headers: HeaderSource, name: string): string {
  if (headers instanceof Headers) {
    return headers.get(name) ?? '';
  }
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) {
      return Array.isArray(value) ? value.join(' ') : (value ?? '');
    }
  }
  return '';
}

function invalid(message: string, cause?: unknown): AtelierError {
  return new AtelierError({ code: 'WEBHOOK_INVALID', message, cause });
}

/** WebhookHandlerOptions are the options of a handler. */
export interface WebhookHandlerOptions extends VerifyOptions {
  /**
   * Called with each event. The service is answered when it returns: within 15 seconds, or the event is sent again. If it
   * throws, the answer is 500, and the event is sent again later.
   */
  onEvent: (received: VerifiedEvent) => void | Promise<void>;
  /** The largest body that is read. Default: 8 MiB. */
  maxBytes?: number;
}

/** WebhookReply is the status that a handler answers with, and a text for 4xx and 5xx. */
export interface WebhookReply {
  status: number;
  text?: string;
}

/** answerWebhook verifies a body and calls onEvent; the handlers for each kind of server share it. */
export async function answerWebhook(
  method: string,
  headers: HeaderSource,
  pieces: AsyncIterable<Uint8Array>,
  options: WebhookHandlerOptions,
): Promise<WebhookReply> {
  if (method !== 'POST') {
    return { status: 405, text: 'Send webhooks with POST.' };
  }
  const body = await readBody(pieces, options.maxBytes ?? 8 << 20);
  if (body === undefined) {
    return { status: 413, text: 'The body is too large.' };
  }

  let received: VerifiedEvent;
  try {
    received = await verifyWebhook(body, headers, options);
  } catch (error) {
    if (error instanceof AtelierError) {
      return { status: 401, text: error.message };
    }
    throw error;
  }
  try {
    await options.onEvent(received);
  } catch {
    return { status: 500, text: 'The event could not be handled.' };
  }
  return { status: 204 };
}

async function readBody(pieces: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array | undefined> {
  const all: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.length;
    if (length > maxBytes) {
      return undefined;
    }
    all.push(piece);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const piece of all) {
    body.set(piece, at);
    at += piece.length;
  }
  return body;
}

/**
 * webhookHandler returns a handler for servers that take a Request and return a Response, such as Deno, Bun, workers and
 * many frameworks. `nodeWebhookHandler` of `atelier-client/node` is the one for `node:http` and Express.
 */
export function webhookHandler(options: WebhookHandlerOptions): (request: globalThis.Request) => Promise<Response> {
  return async (request) => {
    const { status, text } = await answerWebhook(request.method, request.headers, bodyPieces(request), options);
    return new Response(text ?? null, { status });
  };
}

async function* bodyPieces(request: globalThis.Request): AsyncGenerator<Uint8Array> {
  const reader = request.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    yield value;
  }
}

/** Webhooks are the notifications of an account. */
export class Webhooks {
  constructor(private readonly transport: Transport) {}

  /** getSecret reads the secret that signs the account's webhooks. */
  getSecret(options: CallOptions = {}): Promise<Schemas['WebhookSecret']> {
    return this.transport.call('getWebhookSecret', { options });
  }

  /** rotateSecret replaces the secret. For one day events are also signed with the old one. */
  rotateSecret(options: CallOptions = {}): Promise<Schemas['WebhookSecret']> {
    return this.transport.call('rotateWebhookSecret', { options });
  }

  /** listAttempts lists the attempts to deliver a run's event. */
  listAttempts(
    request_id: string,
    query: Query<'listWebhookAttempts'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['WebhookAttempt']> {
    const path = { request_id };
    return new Pages((cursor) =>
      this.transport.call('listWebhookAttempts', { path, query: { ...query, cursor }, options }),
    );
  }

  /** redeliver sends a run's event again. */
  redeliver(request_id: string, options: CallOptions = {}): Promise<Result<'redeliverWebhook'>> {
    return this.transport.call('redeliverWebhook', { path: { request_id }, options });
  }

  /** listDeliveries lists the deliveries of the account. */
  listDeliveries(
    query: Query<'listWebhookDeliveries'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['WebhookDelivery']> {
    return new Pages((cursor) =>
      this.transport.call('listWebhookDeliveries', { query: { ...query, cursor }, options }),
    );
  }
}
