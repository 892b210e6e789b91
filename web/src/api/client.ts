import createClient, { type Middleware } from 'openapi-fetch';
import { readError } from './errors';
import type { components, paths } from './schema';
import { getToken } from './session';

export type Schemas = components['schemas'];

/** authorizedFetch sends a request with the session's token, once more with a new token after a 401. */
export async function authorizedFetch(request: Request): Promise<Response> {
  const second = request.clone();

  request.headers.set('Authorization', `Bearer ${await getToken()}`);
  const response = await fetch(request);
  if (response.status !== 401) {
    return response;
  }

  second.headers.set('Authorization', `Bearer ${await getToken(true)}`);
  return fetch(second);
}

const throwErrors: Middleware = {
  async onResponse({ response }) {
    if (!response.ok && response.status !== 304) {
      throw await readError(response);
    }
    return undefined;
  },
};

/** api calls the service at this page's own address; every refusal is thrown as an ApiError. */
export const api = createClient<paths>({
  baseUrl: `${globalThis.location?.origin ?? ''}/api/v2`,
  fetch: authorizedFetch,
});
api.use(throwErrors);

/** dataOf returns the body of an answer; refusals were thrown before. */
export function dataOf<T>(answer: { data?: T }): T {
  return answer.data as T;
}

/** uploadFile stores a file and reports the sent part from 0 to 1 while it goes; fetch cannot report that. */
export async function uploadFile(
  file: File,
  teamId: string | undefined,
  onProgress: (part: number) => void,
  signal?: AbortSignal,
): Promise<Schemas['Upload']> {
  const token = await getToken();

  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append('file', file, file.name);

    request.open('POST', `/api/v2/uploads${teamId ? `?team_id=${encodeURIComponent(teamId)}` : ''}`);
    request.setRequestHeader('Authorization', `Bearer ${token}`);
    request.upload.onprogress = (event) => onProgress(event.lengthComputable ? event.loaded / event.total : 0);
    request.onerror = () => reject(new TypeError('The connection was lost.'));
    request.onabort = () => reject(new DOMException('The upload was stopped.', 'AbortError'));
    request.onload = async () => {
      const response = new Response(request.responseText, { status: request.status });
      if (response.ok) {
        resolve(await response.json());
      } else {
        reject(await readError(response));
      }
    };
    signal?.addEventListener('abort', () => request.abort());
    request.send(form);
  });
}
