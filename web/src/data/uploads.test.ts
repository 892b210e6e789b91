import { expect, test } from 'vitest';
import { ApiError } from '../api/errors';
import { messageOfUpload } from './uploads';

const refusal = (code: 'UPLOAD_TOO_LARGE' | 'STORAGE_QUOTA_EXCEEDED', details: Record<string, unknown>) =>
  new ApiError(413, { code, message: 'A file is too large.', retryable: false, details, trace_id: 't' }, undefined);

test('a file that is too large is told with the limit of the service', () => {
  const error = refusal('UPLOAD_TOO_LARGE', { limit_bytes: 200_000_000 });

  expect(messageOfUpload({ size: 251_000_000 }, error)).toBe(
    'The file has 251 MB, and a file may have at most 200 MB.',
  );
});

test('any other refusal is told in the words of the service', () => {
  expect(messageOfUpload({ size: 1 }, refusal('UPLOAD_TOO_LARGE', {}))).toBe('A file is too large.');
  expect(messageOfUpload({ size: 1 }, refusal('STORAGE_QUOTA_EXCEEDED', { limit_bytes: 1 }))).toBe(
    'A file is too large.',
  );
});
