import { AtelierError, readError } from './errors.js';
import { isPassing } from './events.js';
import { asFailure, Backoff, Deadline, sleep, withDefaults } from './retry.js';
/** MemoryStore keeps tokens as long as the program runs. */
export class MemoryStore {
    #tokens;
    constructor(tokens) {
        this.#tokens = tokens;
    }
    async load() {
        return this.#tokens;
    }
    async save(tokens) {
        this.#tokens = tokens;
    }
}
/** AccessToken is a credential that does not change. */
export class AccessToken {
    #value;
    constructor(value) {
        this.#value = value;
    }
    async token() {
        return this.#value;
    }
    async renew() {
        return false;
    }
    async replace() { }
}
/**
 * A replaced refresh token works for one more minute and yields the same successor, so that a lost answer loses nothing.
 * All attempts of one refresh therefore happen within this time, close together.
 */
const refreshLimits = withDefaults({ attempts: 40, maxTime: 55, maxWait: 2 });
/** DeviceTokens refreshes the tokens of a device, once for all callers. */
export class DeviceTokens {
    store;
    baseURL;
    fetch;
    timeout;
    #current;
    refreshing;
    constructor(store, baseURL, fetch, timeout) {
        this.store = store;
        this.baseURL = baseURL;
        this.fetch = fetch;
        this.timeout = timeout;
    }
    async token(signal) {
        this.#current ??= await this.load();
        if (isFresh(this.#current)) {
            return this.#current.id_token;
        }
        return (await this.refresh(this.#current.id_token, signal)).id_token;
    }
    async renew(refused, signal) {
        return (await this.refresh(refused, signal)).id_token !== refused;
    }
    async replace(tokens) {
        await this.store.save(tokens);
        this.#current = tokens;
    }
    /** refresh is not aborted by the signal of one caller, because other callers wait for it too. */
    async refresh(old, signal) {
        if (this.#current !== undefined && this.#current.id_token !== old && isFresh(this.#current)) {
            return this.#current;
        }
        this.refreshing ??= this.refreshLocked(old).finally(() => {
            this.refreshing = undefined;
        });
        return withSignal(this.refreshing, signal);
    }
    refreshLocked(old) {
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
    async load() {
        const tokens = await this.store.load();
        if (tokens === undefined) {
            throw new AtelierError({ code: 'UNAUTHENTICATED', message: 'Nobody is signed in: there are no stored tokens.' });
        }
        return tokens;
    }
    async requestTokens(refreshToken) {
        const backoff = new Backoff(refreshLimits);
        for (;;) {
            const deadline = new Deadline(Math.min(this.timeout, 15));
            let failure;
            try {
                const response = await this.fetch(`${this.baseURL}/api/v2/auth/token/refresh`, {
                    method: 'POST',
                    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
                    body: JSON.stringify({ refresh_token: refreshToken }),
                    signal: deadline.signal,
                });
                if (response.ok) {
                    return (await response.json());
                }
                failure = await readError(response);
            }
            catch (error) {
                failure = asFailure(deadline.signal.aborted ? deadline.signal.reason : error);
            }
            finally {
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
function isFresh(tokens) {
    const margin = Math.min(60, lifetimeOf(tokens) / 10);
    return tokens.expires_at - Date.now() / 1000 > margin;
}
/** lifetimeOf reads the time of issue from the ID token, which is a JWT. It needs no verification: only we use it. */
function lifetimeOf(tokens) {
    try {
        const payload = tokens.id_token.split('.')[1] ?? '';
        const claims = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
        const lifetime = claims.exp - claims.iat;
        return lifetime > 0 ? lifetime : 100;
    }
    catch {
        return 100;
    }
}
function withSignal(promise, signal) {
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
