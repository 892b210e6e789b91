/**
 * AtelierError is every failure of a call, except that an aborted signal throws its own reason. Act on `code`, show
 * `message`, and quote `trace_id` when you ask for help.
 */
export class AtelierError extends Error {
    name = 'AtelierError';
    /** The code for programs. */
    code;
    /** The HTTP status; 0 if there was no answer. */
    status;
    /** Whether the same call can succeed later. */
    retryable;
    /** Details for programs, by code; `INVALID_REQUEST` has `fields`. */
    details;
    /** The id of the request in the service's logs; empty if there was no answer. */
    trace_id;
    /** Seconds to wait before the next attempt; undefined if the service named none. */
    retry_after;
    constructor(fields) {
        super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
        this.code = fields.code;
        this.status = fields.status ?? 0;
        this.retryable = fields.retryable ?? false;
        this.details = fields.details ?? {};
        this.trace_id = fields.trace_id ?? '';
        this.retry_after = fields.retry_after;
    }
}
/** RunFailedError says that a run has failed or was cancelled. */
export class RunFailedError extends AtelierError {
    name = 'RunFailedError';
    /** The run as it ended. */
    run;
    constructor(run) {
        super({
            code: run.error?.code ?? 'CANCELLED',
            message: run.error?.message ?? 'The run was cancelled.',
            retryable: run.error?.retryable ?? false,
        });
        this.run = run;
    }
}
/** readError turns an answer that is not a success into an error. It consumes the body. */
export async function readError(response) {
    const retryAfter = parseRetryAfter(response.headers.get('Retry-After'));
    const text = await response.text().catch(() => '');
    const body = parseErrorBody(text);
    if (body === undefined) {
        return new AtelierError({
            code: 'BAD_RESPONSE',
            message: `The answer has status ${response.status} and is not an error of the service.`,
            status: response.status,
            retryable: response.status === 408 || response.status === 429 || response.status >= 500,
            trace_id: response.headers.get('X-Trace-Id') ?? '',
            retry_after: retryAfter,
        });
    }
    return new AtelierError({
        code: body.code,
        message: body.message,
        status: response.status,
        retryable: body.retryable,
        details: body.details,
        trace_id: body.trace_id,
        retry_after: retryAfter,
    });
}
function parseErrorBody(text) {
    try {
        const body = JSON.parse(text)?.error;
        return typeof body?.code === 'string' && typeof body?.message === 'string' ? body : undefined;
    }
    catch {
        return undefined;
    }
}
/** parseRetryAfter reads the header in both of its forms, seconds and a date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value, now = Date.now()) {
    if (value === null || value.trim() === '') {
        return undefined;
    }
    const seconds = Number(value);
    if (Number.isFinite(seconds)) {
        return Math.max(0, seconds);
    }
    const date = Date.parse(value);
    return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}
