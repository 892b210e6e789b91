import { AtelierError, readError } from './errors.js';
import { isPassing } from './events.js';
import { asFailure, Backoff, Deadline, sleep, withDefaults } from './retry.js';
import type { components } from './schema.js';
import type { Fetch } from './transport.js';

/** Tokens are what a device got when its person signed in. Members beyond these three are kept. */
export type Tokens = components['schemas']['Tokens'];

/** TokenStore keeps the tokens of a device. `FileStore` of `atelier-client/node` keeps them in a file. */
export interface TokenStore {
  /** load returns the stored tokens, or undefined if nobody is signed in. */
  load(): Promise<Tokens | undefined>;
  /** save replaces the stored tokens; undefined removes them. */
  save(tokens: Tokens | undefined): Promise<void>;
  /** lock runs work while no other process refreshes the same tokens; a store of one process needs no lock. */
  lock?<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/** MemoryStore keeps tokens as long as the program runs. */
export class MemoryStore implements TokenStore {
  #tokens: Tokens | undefined;

  constructor(tokens?: Tokens) {
    this.#tokens = tokens;
  }

  async load(): Promise<Tokens | undefined> {
    return this.#tokens;
  }

  async save(tokens: Tokens | undefined): Promise<void> {
    this.#tokens = tokens;
  }
}

/** CredentialSource gives the token for the next request. */
export interface CredentialSource {
  token(signal?: AbortSignal): Promise<string>;
  /** renew replaces a token that the service refused, and reports whether there is another one now. */
  renew(refused: string, signal?: AbortSignal): Promise<boolean>;
  /** replace keeps the tokens of a new sign-in; undefined forgets them. */
  replace(tokens: Tokens | undefined): Promise<void>;
}

/** AccessToken is a credential that does not change. */
export class AccessToken implements CredentialSource {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  async token(): Promise<string> {
    return this.#value;
  }

  async renew(): Promise<boolean> {
    return false;
  }

  async replace(): Promise<void> {}
}

/**
 * A replaced refresh token works for one more minute and yields the same successor, so that a lost answer loses nothing.
 * All attempts of one refresh therefore happen within this time, close together.
 */
const refreshLimits = withDefaults({ attempts: 40, maxTime: 55, maxWait: 2 });

/** DeviceTokens refreshes the tokens of a device, once for all callers. */
export class DeviceTokens implements CredentialSource {
  #current: Tokens | undefined;
  private refreshing: Promise<Tokens> | undefined;

  constructor(
    private readonly store: TokenStore,
    private readonly baseURL: string,
    private readonly fetch: Fetch,
    private readonly timeout: number,
  ) {}

  async token(signal?: AbortSignal): Promise<string> {
    this.#current ??= await this.load();
    if (isFresh(this.#current)) {
      return this.#current.id_token;
    }
    return (await this.refresh(this.#current.id_token, signal)).id_token;
  }

  async renew(refused: string, signal?: AbortSignal): Promise<boolean> {
    return (await this.refresh(refused, signal)).id_token !== refused;
  }

  async replace(tokens: Tokens | undefined): Promise<void> {
    await this.store.save(tokens);
    this.#current = tokens;
  }

  /** refresh is not aborted by the signal of one caller, because other callers wait for it too. */
  private async refresh(old: string, signal?: AbortSignal): Promise<Tokens> {
    if (this.#current !== undefined && this.#current.id_token !== old && isFresh(this.#current)) {
      return this.#current;
    }
    this.refreshing ??= this.refreshLocked(old).finally(() => {
      this.refreshing = undefined;
    });
    return withSignal(this.refreshing, signal);
  }

  private refreshLocked(old: string): Promise<Tokens> {
    const work = async () => {
      // Another process may have refreshed the tokens in the meantime.
      const stored = await this.load();
      if (stored.id_token !== old && isFresh(stored)) {
        this.#current = stored;
        return stored;
      }
      const tokens = { ...stored, ...(await this.requestTokens(stored.refresh_token)) };
      await this.store.save(tokens);
      this.#current = tokens;
      return tokens;
    };
    return this.store.lock ? this.store.lock(work) : work();
  }

  private async load(): Promise<Tokens> {
    const tokens = await this.store.load();
    if (tokens === undefined) {
      throw new AtelierError({ code: 'UNAUTHENTICATED', message: 'Nobody is signed in: there are no stored tokens.' });
    }
    return tokens;
  }

  private async requestTokens(refreshToken: string): Promise<Tokens> {
    const backoff = new Backoff(refreshLimits);

    for (;;) {
      const deadline = new Deadline(Math.min(this.timeout, 15));
      let failure: AtelierError;
      try {
        const response = await this.fetch(`${this.baseURL}/api/v2/auth/token/refresh`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
          body: JSON.stringify({ refresh_token: refreshToken }),
          signal: deadline.signal,
        });
        if (response.ok) {
          return (await response.json()) as Tokens;
        }
        failure = await readError(response);
      } catch (error) {
        failure = asFailure(deadline.signal.aborted ? deadline.signal.reason : error);
      } finally {
        deadline.end();
      }

      const delay = isPassing(failure) ? backoff.delayAfter(failure) : undefined;
      if (delay === undefined) {
        throw failure;
      }
      await sleep(delay);
    }
  }
}

/** isFresh reports whether an ID token will live for a tenth of its life, or a minute if that is less. */
function isFresh(tokens: Tokens): boolean {
  const margin = Math.min(60, lifetimeOf(tokens) / 10);
  return tokens.expires_at - Date.now() / 1000 > margin;
}

/** lifetimeOf reads the time of issue from the ID token, which is a JWT. It needs no verification: only we use it. */
function lifetimeOf(tokens: Tokens): number {
  try {
    const payload = tokens.id_token.split('.')[1] ?? '';
    const claims = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    const lifetime = claims.exp - claims.iat;
    return lifetime > 0 ? lifetime : 100;
  } catch {
    return 100;
  }
}

function withSignal<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) {
    return promise;
  }
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) {
      stop();
    }
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
