import { once } from 'node:events';
import { createServer } from 'node:http';

/** startServer starts a server on this machine that answers with handle, and ends with the test. */
export async function startServer(t, handle) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const pieces = [];
    try {
      for await (const piece of request) {
        pieces.push(piece);
      }
    } catch {
      return;
    }
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    const seen = {
      method: request.method,
      path: pathname.replace(/^\/api\/v2/, ''),
      query: searchParams,
      headers: request.headers,
      body: Buffer.concat(pieces),
      at: Date.now(),
    };
    requests.push(seen);
    await handle(seen, response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

/** answer sends JSON. */
export function answer(response, status, value, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(value === undefined ? undefined : JSON.stringify(value));
}

/** refuse sends an error as the service does. */
export function refuse(response, status, code, { headers = {}, ...more } = {}) {
  const error = { code, message: `refused with ${code}`, retryable: false, details: {}, trace_id: 'abc', ...more };
  answer(response, status, { error }, headers);
}

/** makeTokens returns tokens with an ID token that lives for some seconds. */
export function makeTokens(name, seconds) {
  const now = Math.floor(Date.now() / 1000);
  const claims = Buffer.from(JSON.stringify({ iat: now, exp: now + Math.max(seconds, 1) })).toString('base64url');
  return { id_token: `head.${claims}.${name}`, refresh_token: `refresh-${name}`, expires_at: now + seconds };
}
