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
export declare function verifyWebhook(body: string | Uint8Array, headers: HeaderSource, options: VerifyOptions): Promise<VerifiedEvent>;
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
export declare function answerWebhook(method: string, headers: HeaderSource, pieces: AsyncIterable<Uint8Array>, options: WebhookHandlerOptions): Promise<WebhookReply>;
/**
 * webhookHandler returns a handler for servers that take a Request and return a Response, such as Deno, Bun, workers and
 * many frameworks. `nodeWebhookHandler` of `atelier-client/node` is the one for `node:http` and Express.
 */
export declare function webhookHandler(options: WebhookHandlerOptions): (request: globalThis.Request) => Promise<Response>;
/** Webhooks are the notifications of an account. */
export declare class Webhooks {
    private readonly transport;
    constructor(transport: Transport);
    /** getSecret reads the secret that signs the account's webhooks. */
    getSecret(options?: CallOptions): Promise<Schemas['WebhookSecret']>;
    /** rotateSecret replaces the secret. For one day events are also signed with the old one. */
    rotateSecret(options?: CallOptions): Promise<Schemas['WebhookSecret']>;
    /** listAttempts lists the attempts to deliver a run's event. */
    listAttempts(request_id: string, query?: Query<'listWebhookAttempts'>, options?: CallOptions): Pages<Schemas['WebhookAttempt']>;
    /** redeliver sends a run's event again. */
    redeliver(request_id: string, options?: CallOptions): Promise<Result<'redeliverWebhook'>>;
    /** listDeliveries lists the deliveries of the account. */
    listDeliveries(query?: Query<'listWebhookDeliveries'>, options?: CallOptions): Pages<Schemas['WebhookDelivery']>;
}
export {};
