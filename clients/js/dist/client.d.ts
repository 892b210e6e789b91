import { AccessTokens, Library, Me } from './account.js';
import { AccountEvents, Boards } from './boards.js';
import { Companies, Invitations, Reports, Teams } from './companies.js';
import { type CredentialSource, type TokenStore } from './credentials.js';
import { Downloads } from './downloads.js';
import { Flows } from './flows.js';
import { OperatorCalls, Service } from './operator.js';
import { type RetryOptions } from './retry.js';
import { type Run, type RunRequest, Runs, type WaitOptions } from './runs.js';
import type { Hash } from './sha256.js';
import { Auth, type SignInOptions, type SignInResult } from './signin.js';
import { Tools } from './tools.js';
import { type CallOptions, type CreateOptions, type Fetch } from './transport.js';
import { Uploads } from './uploads.js';
import { Webhooks } from './webhooks.js';
/** ClientOptions describe a service and a credential for it. */
export interface ClientOptions {
    /** The address of the service, such as `https://atelier.example`. */
    baseURL: string;
    /** An access token. */
    token?: string;
    /** The store of a device's tokens, instead of an access token; `signIn` fills it. Default: in memory. */
    store?: TokenStore;
    /** The team to act for; absent means the personal account. */
    team_id?: string;
    /** Limits of retries. */
    retry?: RetryOptions;
    /** Seconds without an answer after which an attempt has failed. Default: 60. */
    timeout?: number;
    /** The function that sends requests. Default: `globalThis.fetch`. */
    fetch?: Fetch;
    /** Makes the hash that checks downloads. Default: one in JavaScript; `atelier-client/node` has a faster one. */
    newHash?: () => Hash;
}
/** Client calls one service with one credential. It keeps no connection and needs no closing. */
export declare class Client {
    #private;
    readonly auth: Auth;
    readonly me: Me;
    readonly accessTokens: AccessTokens;
    readonly companies: Companies;
    readonly teams: Teams;
    readonly invitations: Invitations;
    readonly tools: Tools;
    readonly runs: Runs;
    readonly webhooks: Webhooks;
    readonly uploads: Uploads;
    readonly library: Library;
    readonly downloads: Downloads;
    readonly flows: Flows;
    readonly boards: Boards;
    readonly events: AccountEvents;
    readonly reports: Reports;
    readonly operator: OperatorCalls;
    readonly service: Service;
    /** The credentials are those of another client that this one shares the sign-in with; see forTeam. */
    constructor(options: ClientOptions, credentials?: CredentialSource);
    /** forTeam returns a client that shares the sign-in but acts for a team; '' means the personal account. */
    forTeam(team_id: string): this;
    /** run starts a run, waits for its end, and returns it if it has succeeded; see `runs.run`. */
    run(request: RunRequest, options?: CreateOptions & WaitOptions): Promise<Run>;
    /**
     * signIn signs a person in with their browser (RFC 8628): it shows a code, waits until the person has approved it, and
     * keeps the tokens in the client's store. It throws `DEVICE_CODE_EXPIRED` if nobody approves in time.
     */
    signIn(options: SignInOptions): Promise<SignInResult>;
    /** signOut signs this device out, and removes its tokens from the client's store. */
    signOut(options?: CallOptions): Promise<void>;
}
