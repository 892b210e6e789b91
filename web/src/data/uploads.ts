import { ApiError } from '../api/errors';
import { text } from '../text/shared';
import { formatBytes } from '../ui/format';
import { messageOf } from './ErrorFault';

/** messageOfUpload returns why a file was not stored. How large a file may be is what the service says: its operator sets it. */
export function messageOfUpload(file: Pick<File, 'size'>, error: unknown): string {
  if (error instanceof ApiError && error.code === 'UPLOAD_TOO_LARGE') {
    const { limit_bytes: limit } = error.body.details as { limit_bytes?: number };
    if (limit !== undefined) {
      return text.fileTooLarge(formatBytes(file.size), formatBytes(limit));
    }
  }

  return messageOf(error);
}
