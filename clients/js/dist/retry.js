import { AtelierError } from './errors.js';
/** withDefaults fills in the limits that are absent. */
export function withDefaults(options = {}) {
    return {
        attempts: options.attempts ?? 10,
        maxTime: options.maxTime ?? 180,
        minWait: options.minWait ?? 0.2,
        maxWait: options.maxWait ?? 5,
        onRetry: options.onRetry ?? (() => { }),
    };
}
/** once are the limits of a request that is sent a single time. */
export const once = withDefaults({ attempts: 1 });
/**
 * Backoff counts the attempts of one call and says how long to wait before the next. The waits double, with a random part
 * so that clients that failed together do not return together.
 */
export class Backoff {
    limits;
    began = Date.now();
    failures = 0;
    constructor(limits) {
        this.limits = limits;
    }
    /**
     * delayAfter returns the seconds to wait after a failure, or undefined if the limits forbid another attempt. The
     * service's Retry-After is a minimum.
     */
    delayAfter(failure) {
        this.failures++;
        const ceiling = Math.min(this.limits.maxWait, this.limits.minWait * 2 ** (this.failures - 1));
        const delay = Math.max(failure.retry_after ?? 0, ceiling * (0.5 + Math.random() / 2));
        const elapsed = (Date.now() - this.began) / 1000;
        if (this.failures >= this.limits.attempts || elapsed + delay > this.limits.maxTime) {
            return undefined;
        }
        this.limits.onRetry(failure, delay);
        return delay;
    }
}
/** Timers with more milliseconds than this would fire at once. */
const longestTimer = 2 ** 31 - 1;
/** sleep waits, and throws the signal's reason if the signal aborts. */
export function sleep(seconds, signal) {
    return new Promise((resolve, reject) => {
        if (signal?.aborted) {
            reject(signal.reason);
            return;
        }
        const stop = () => {
            clearTimeout(timer);
            reject(signal?.reason);
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener('abort', stop);
            resolve();
        }, Math.min(seconds * 1000, longestTimer));
        signal?.addEventListener('abort', stop, { once: true });
    });
}
/**
 * Deadline aborts its signal when the caller's signal aborts, or when extend was not called for some seconds. Every
 * attempt has one, so that a silent connection ends.
 */
export class Deadline {
    seconds;
    parent;
    controller = new AbortController();
    timer;
    follow = () => this.controller.abort(this.parent?.reason);
    constructor(seconds, parent) {
        this.seconds = seconds;
        this.parent = parent;
        if (parent?.aborted) {
            this.follow();
            return;
        }
        parent?.addEventListener('abort', this.follow, { once: true });
        this.extend();
    }
    get signal() {
        return this.controller.signal;
    }
    /** extend begins the time anew, with other seconds if they are given. */
    extend(seconds = this.seconds) {
        this.seconds = seconds;
        this.pause();
        if (!this.controller.signal.aborted && Number.isFinite(seconds)) {
            this.timer = setTimeout(() => this.expire(), Math.min(seconds * 1000, longestTimer));
        }
    }
    /** pause stops the time until extend is called, while nobody asks for more. */
    pause() {
        clearTimeout(this.timer);
    }
    expire() {
        const message = `There was no answer for ${this.seconds} seconds.`;
        this.controller.abort(new AtelierError({ code: 'TIMEOUT', message, retryable: true }));
    }
    /** end releases the timer and the caller's signal. */
    end() {
        this.pause();
        this.parent?.removeEventListener('abort', this.follow);
    }
}
/** asFailure turns what fetch throws into an AtelierError. */
export function asFailure(error) {
    if (error instanceof AtelierError) {
        return error;
    }
    if (error instanceof SyntaxError) {
        const message = 'The answer of the service broke off, or is not JSON.';
        return new AtelierError({ code: 'NETWORK', message, retryable: true, cause: error });
    }
    const cause = error?.cause;
    const text = cause?.message || error?.message || String(error);
    return new AtelierError({
        code: 'NETWORK',
        message: `The service could not be reached: ${text}`,
        retryable: true,
        cause: error,
    });
}
const unsentCodes = new Set([
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'UND_ERR_CONNECT_TIMEOUT',
]);
/** wasNotSent reports whether a request certainly did not reach the service. Browsers do not tell, Node does. */
export function wasNotSent(error) {
    let cause = error.cause;
    for (let depth = 0; depth < 4 && cause instanceof Error; depth++) {
        if (unsentCodes.has(cause.code ?? '')) {
            return true;
        }
        cause = cause.cause;
    }
    return false;
}
