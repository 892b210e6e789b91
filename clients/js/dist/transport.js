import { readError } from './errors.js';
import { rules } from './operations.js';
import { asFailure, Backoff, Deadline, sleep, wasNotSent } from './retry.js';
/** Transport sends requests to one service, and repeats them where that does no harm. */
export class Transport {
    parts;
    constructor(parts) {
        this.parts = parts;
    }
    /** call calls an operation and returns its JSON answer. */
    call(operation, request = {}) {
        return this.send(operation, request, async (response) => {
            if (response.status === 204) {
                return undefined;
            }
            return (await response.json());
        });
    }
    /**
     * send sends a request until read has returned a value. An answer that breaks off is a network error, so read belongs to
     * the attempt. A deletion whose first answer was lost has succeeded if there is nothing to delete any more.
     */
    async send(operation, request, read) {
        const rule = rules[operation];
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
            let failure;
            try {
                return await this.attempt(url, { method, headers, body: bodyOf(request) }, token, request, read);
            }
            catch (error) {
                signal?.throwIfAborted();
                failure = asFailure(error);
            }
            if (failure.status === 401 && token !== undefined && !isRenewed && (await this.renew(token, signal))) {
                isRenewed = true;
                continue;
            }
            if (method === 'DELETE' && failure.status === 404 && mayBeDone) {
                return undefined;
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
    async open(operation, request) {
        const rule = rules[operation];
        const signal = request.options?.signal;
        const deadline = new Deadline(request.timeout ?? this.parts.timeout, signal);
        try {
            for (let isRenewed = false;; isRenewed = true) {
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
        }
        catch (error) {
            deadline.end();
            signal?.throwIfAborted();
            throw asFailure(deadline.signal.aborted ? deadline.signal.reason : error);
        }
    }
    async attempt(url, init, token, request, read) {
        const deadline = new Deadline(request.timeout ?? this.parts.timeout, request.options?.signal);
        try {
            const headers = withToken(init.headers, token);
            const response = await this.parts.fetch(url, { ...init, headers, signal: deadline.signal });
            if (!response.ok) {
                throw await readError(response);
            }
            return await read(response);
        }
        catch (error) {
            throw deadline.signal.aborted ? deadline.signal.reason : error;
        }
        finally {
            deadline.end();
        }
    }
    async renew(token, signal) {
        return (await this.parts.credentials?.renew(token, signal)) ?? false;
    }
    address(rule, request) {
        const path = rule.path.replace(/\{(\w+)\}/g, (_, name) => {
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
    headers(rule, request) {
        const headers = { Accept: 'application/json', ...request.headers };
        if (request.json !== undefined) {
            headers['Content-Type'] = 'application/json';
        }
        if (rule.isKeyed) {
            headers['Idempotency-Key'] = request.options?.idempotencyKey ?? randomKey();
        }
        return headers;
    }
}
function bodyOf(request) {
    return request.json === undefined ? request.body : JSON.stringify(request.json);
}
function withToken(headers, token) {
    return token === undefined ? headers : { ...headers, Authorization: `Bearer ${token}` };
}
/**
 * mayRepeat reports whether a failed request may be sent again. 408, 429 and 503 with Retry-After say that nothing was
 * done. Anything else may have happened although the answer is lost, so only safe requests are repeated.
 */
function mayRepeat(failure, isSafe) {
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
export function randomKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
