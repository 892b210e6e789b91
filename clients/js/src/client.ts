import { AccessTokens, Library, Me } from './account.js';
import { AccountEvents, Boards } from './boards.js';
import { Companies, Invitations, Reports, Teams } from './companies.js';
import { AccessToken, type CredentialSource, DeviceTokens, MemoryStore, type TokenStore } from './credentials.js';
import { Downloads } from './downloads.js';
import { AtelierError } from './errors.js';
import { Flows } from './flows.js';
import { OperatorCalls, Service } from './operator.js';
import { type RetryOptions, withDefaults } from './retry.js';
import { type Run, type RunRequest, Runs, type WaitOptions } from './runs.js';
import type { Hash } from './sha256.js';
import { Auth, type SignInOptions, type SignInResult, waitForApproval } from './signin.js';
import { Tools } from './tools.js';
import { type CallOptions, type CreateOptions, type Fetch, Transport } from './transport.js';
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
export class Client {
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

  // Hidden from console.log, as they have the token.
  readonly #options: ClientOptions;
  readonly #credentials: CredentialSource;

  /** The credentials are those of another client that this one shares the sign-in with; see forTeam. */
  constructor(options: ClientOptions, credentials?: CredentialSource) {
    if (options.token !== undefined && options.store !== undefined) {
      throw new TypeError('give a token or a store of tokens, not both');
    }
    const baseURL = checkedBaseURL(options.baseURL);
    const fetch: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    const timeout = options.timeout ?? 60;
    this.#options = options;
    this.#credentials =
      credentials ??
      (options.token === undefined
        ? new DeviceTokens(options.store ?? new MemoryStore(), baseURL, fetch, timeout)
        : new AccessToken(options.token));
    const transport = new Transport({
      baseURL,
      credentials: this.#credentials,
      team_id: options.team_id ?? '',
      fetch,
      retry: withDefaults(options.retry),
      timeout,
    });

    this.auth = new Auth(transport);
    this.me = new Me(transport);
    this.accessTokens = new AccessTokens(transport);
    this.companies = new Companies(transport);
    this.teams = new Teams(transport);
    this.invitations = new Invitations(transport);
    this.tools = new Tools(transport);
    this.runs = new Runs(transport, this.tools);
    this.webhooks = new Webhooks(transport);
    this.uploads = new Uploads(transport);
    this.library = new Library(transport);
    this.downloads = new Downloads(transport, options.newHash);
    this.flows = new Flows(transport);
    this.boards = new Boards(transport);
    this.events = new AccountEvents(transport);
    this.reports = new Reports(transport);
    this.operator = new OperatorCalls(transport);
    this.service = new Service(transport);
  }

  /** forTeam returns a client that shares the sign-in but acts for a team; '' means the personal account. */
  forTeam(team_id: string): this {
    const Same = this.constructor as new (options: ClientOptions, credentials: CredentialSource) => this;
    return new Same({ ...this.#options, team_id }, this.#credentials);
  }

  /** run starts a run, waits for its end, and returns it if it has succeeded; see `runs.run`. */
  run(request: RunRequest, options: CreateOptions & WaitOptions = {}): Promise<Run> {
    return this.runs.run(request, options);
  }

  /**
   * signIn signs a person in with their browser (RFC 8628): it shows a code, waits until the person has approved it, and
   * keeps the tokens in the client's store. It throws `DEVICE_CODE_EXPIRED` if nobody approves in time.
   */
  async signIn(options: SignInOptions): Promise<SignInResult> {
    if (this.#credentials instanceof AccessToken) {
      throw new TypeError('the client has an access token, and no store for the tokens of a sign-in');
    }
    const result = await waitForApproval(this.auth, options);
    await this.#credentials.replace(result.tokens);
    return result;
  }

  /** signOut signs this device out, and removes its tokens from the client's store. */
  async signOut(options: CallOptions = {}): Promise<void> {
    try {
      await this.auth.revokeDevice(undefined, options);
    } catch (error) {
      if (!(error instanceof AtelierError) || (error.status !== 401 && error.code !== 'UNAUTHENTICATED')) {
        throw error;
      }
    }
    await this.#credentials.replace(undefined);
  }
}

/** checkedBaseURL returns the address without a slash or /api/v2 at its end. */
function checkedBaseURL(address: string): string {
  const url = new URL(address);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`${address} is not the address of a service: it must begin with http:// or https://`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/api\/v2$/, '')}`;
}
