import { AtelierError } from './errors.js';
/** RetryOptions limit how often and how long a call is repeated. All times are seconds. */
export interface RetryOptions {
    /** The most attempts of one call, the first included. Default: 10. */
    attempts?: number;
    /** The time after which no attempt begins. Default: 180. */
    maxTime?: number;
    /** The wait after the first attempt, which doubles with each further one. Default: 0.2. */
    minWait?: number;
    /** The longest wait that the client chooses itself. Default: 5. */
    maxWait?: number;
    /** Told of each failed attempt before the wait. */
    onRetry?: (failure: AtelierError, wait: number) => void;
}
/** RetryLimits are RetryOptions with their defaults. */
export type RetryLimits = Required<RetryOptions>;
/** withDefaults fills in the limits that are absent. */
export declare function withDefaults(options?: RetryOptions): RetryLimits;
/** once are the limits of a request that is sent a single time. */
export declare const once: Required<RetryOptions>;
/**
 * Backoff counts the attempts of one call and says how long to wait before the next. The waits double, with a random part
 * so that clients that failed together do not return together.
 */
export declare class Backoff {
    private readonly limits;
    private readonly began;
    private failures;
    constructor(limits: RetryLimits);
    /**
     * delayAfter returns the seconds to wait after a failure, or undefined if the limits forbid another attempt. The
     * service's Retry-After is a minimum.
     */
    delayAfter(failure: AtelierError): number | undefined;
}
/** sleep waits, and throws the signal's reason if the signal aborts. */
export declare function sleep(seconds: number, signal?: AbortSignal): Promise<void>;
/**
 * Deadline aborts its signal when the caller's signal aborts, or when extend was not called for some seconds. Every
 * attempt has one, so that a silent connection ends.
 */
export declare class Deadline {
    private seconds;
    private readonly parent?;
    private readonly controller;
    private timer;
    private readonly follow;
    constructor(seconds: number, parent?: AbortSignal | undefined);
    get signal(): AbortSignal;
    /** extend begins the time anew, with other seconds if they are given. */
    extend(seconds?: number): void;
    /** pause stops the time until extend is called, while nobody asks for more. */
    pause(): void;
    private expire;
    /** end releases the timer and the caller's signal. */
    end(): void;
}
/** asFailure turns what fetch throws into an AtelierError. */
export declare function asFailure(error: unknown): AtelierError;
/** wasNotSent reports whether a request certainly did not reach the service. Browsers do not tell, Node does. */
export declare function wasNotSent(error: AtelierError): boolean;
