import { authorizedFetch } from '../api/client';
import { readError } from '../api/errors';

/** saveFromService fetches a file of the service with the session's token, and lets the browser save it. */
export async function saveFromService(address: string, name: string): Promise<void> {
  const response = await authorizedFetch(new Request(address));
  if (!response.ok) {
    throw await readError(response);
  }

  saveBlob(await response.blob(), nameOfFile(response.headers.get('Content-Disposition')) ?? name);
}

/** saveBlob lets the browser save bytes as a file. */
export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** nameOfFile reads the name of a file from a Content-Disposition header. */
export function nameOfFile(disposition: string | null): string | undefined {
  return /filename="?([^";]+)"?/.exec(disposition ?? '')?.[1];
}
