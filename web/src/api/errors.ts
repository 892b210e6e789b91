import type { components } from './schema';

type ErrorBody = components['schemas']['ErrorBody'];

/** FieldProblem is one refused input, with its place in the request. */
export type FieldProblem = { path: string; message: string };

/** ApiError is a refusal of the service, in the words of the service. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly body: ErrorBody,
    /** Seconds to wait before the next attempt, where the service names them. */
    readonly retryAfter: number | undefined,
  ) {
    super(body.message);
  }

  get code(): string {
    return this.body.code;
  }

  get fields(): FieldProblem[] {
    return (this.body.details as { fields?: FieldProblem[] }).fields ?? [];
  }
}

/** isOffline reports whether the error says that the service was not reached at all. */
export function isOffline(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof ApiError && [502, 503, 504].includes(error.status));
}

/** readError turns a refusal into an ApiError; whatever is not in the service's form becomes INTERNAL. */
export async function readError(response: Response): Promise<ApiError> {
  const answer = (await response
    .clone()
    .json()
    .catch(() => undefined)) as { error?: ErrorBody } | undefined;
  const body: ErrorBody = answer?.error ?? {
    code: response.status >= 502 ? 'UPSTREAM_UNAVAILABLE' : 'INTERNAL',
    message: `The service gave an unexpected answer (${response.status}).`,
    retryable: true,
    details: {},
    trace_id: response.headers.get('X-Trace-Id') ?? '',
  };
  const retryAfter = Number(response.headers.get('Retry-After'));

  return new ApiError(response.status, body, retryAfter > 0 ? retryAfter : undefined);
}
