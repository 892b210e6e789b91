import { ApiError, isOffline } from '../api/errors';
import { Fault } from '../ui/States';

/** messageOf returns what a person should read about an error. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) {
    return error.message;
  }
  if (isOffline(error)) {
    return 'The service cannot be reached. Check the connection, then try again.';
  }
  return 'Something went wrong in this page. Load it again, then try once more.';
}

/** ErrorFault shows an error of a call: the service's message, the request's id, and a button where a retry can help. */
export function ErrorFault({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const refusal = error instanceof ApiError ? error : undefined;

  return (
    <Fault
      message={messageOf(error)}
      traceId={refusal?.body.trace_id}
      offline={isOffline(error)}
      onRetry={refusal && !refusal.body.retryable ? undefined : onRetry}
    />
  );
}
