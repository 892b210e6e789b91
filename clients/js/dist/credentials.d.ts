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
export declare class MemoryStore implements TokenStore {
    #private;
    constructor(tokens?: Tokens);
    load(): Promise<Tokens | undefined>;
    save(tokens: Tokens | undefined): Promise<void>;
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
export declare class AccessToken implements CredentialSource {
    #private;
    constructor(value: string);
    token(): Promise<string>;
    renew(): Promise<boolean>;
    replace(): Promise<void>;
}
/** DeviceTokens refreshes the tokens of a device, once for all callers. */
export declare class DeviceTokens implements CredentialSource {
    #private;
    private readonly store;
    private readonly baseURL;
    private readonly fetch;
    private readonly timeout;
    private refreshing;
    constructor(store: TokenStore, baseURL: string, fetch: Fetch, timeout: number);
    token(signal?: AbortSignal): Promise<string>;
    renew(refused: string, signal?: AbortSignal): Promise<boolean>;
    replace(tokens: Tokens | undefined): Promise<void>;
    /** refresh is not aborted by the signal of one caller, because other callers wait for it too. */
    private refresh;
    private refreshLocked;
    private load;
    private requestTokens;
}
