// A certified OpenID provider for tests. It prints the address of its control
// server, which makes providers, takes them down and up again, and ends what
// they granted:
//
//   POST /providers {"redirect_uris": [...]}  -> {"id", "issuer", "client_id", "client_secret"}
//   POST /providers/ID/down                   nobody can connect; nothing is forgotten
//   POST /providers/ID/up
//   POST /providers/ID/revoke?account=LOGIN   ends every grant of the account
//   DELETE /providers/ID
//
// Any login signs in with any password. The login is the subject and the mail
// address, verified unless it starts with "unverified-".
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { Provider } from 'oidc-provider';

const secret = () => randomBytes(24).toString('base64url');
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
const providers = new Map();

async function listen(server, port) {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

async function create({ redirect_uris }) {
  const client = {
    client_id: `atelier-${secret()}`, client_secret: secret(), redirect_uris,
    grant_types: ['authorization_code', 'refresh_token'],
  };
  // The issuer names the port, so the port comes first.
  let answer;
  const server = createServer((request, response) => answer(request, response));
  const port = await listen(server, 0);
  // Another name than that of the service in a test makes the two different
  // sites to a browser, as they are in life.
  const issuer = `http://localhost:${port}`;
  const provider = new Provider(issuer, {
    clients: [client],
    jwks: { keys: [{ ...key, use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [secret()] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    scopes: ['openid', 'offline_access'],
    pkce: { required: () => true },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    features: { devInteractions: { enabled: true } },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 86400, IdToken: 600, Interaction: 600, RefreshToken: 86400, Session: 86400 },
    findAccount: (_, login) => ({
      accountId: login,
      claims: () => ({ sub: login, email: login, email_verified: !login.startsWith('unverified-'), name: login }),
    }),
  });
  const granted = new Map(); // ids of grants by account
  provider.on('grant.saved', ({ accountId, jti }) => granted.set(accountId, (granted.get(accountId) ?? new Set()).add(jti)));
  answer = provider.callback();
  const id = secret();
  providers.set(id, { server, port, provider, granted });
  return { id, issuer, client_id: client.client_id, client_secret: client.client_secret };
}

function down({ server }) {
  server.close();
  server.closeAllConnections();
}

async function revoke({ provider, granted }, account) {
  for (const id of granted.get(account) ?? []) {
    await Promise.all([provider.AccessToken, provider.AuthorizationCode, provider.RefreshToken].map((kind) => kind.revokeByGrantId(id)));
    await provider.Grant.adapter.destroy(id);
  }
  granted.delete(account);
}

async function control(request) {
  const { pathname, searchParams } = new URL(request.url, 'http://control');
  const [, , id, act] = pathname.split('/');
  if (!id) {
    let body = '';
    for await (const part of request) body += part;
    return create(JSON.parse(body));
  }
  const one = providers.get(id);
  switch (`${request.method} ${act ?? ''}`) {
    case 'POST down': down(one); break;
    case 'POST up': await listen(one.server, one.port); break;
    case 'POST revoke': await revoke(one, searchParams.get('account')); break;
    case 'DELETE ': down(one); providers.delete(id); break;
    default: throw new Error(`no such act: ${request.method} ${pathname}`);
  }
  return {};
}

const port = await listen(createServer(async (request, response) => {
  try {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(await control(request)));
  } catch (error) {
    console.error(error);
    response.writeHead(500);
    response.end(JSON.stringify({ error: String(error) }));
  }
}), 0);
console.log(`control: http://127.0.0.1:${port}`);
