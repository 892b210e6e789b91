// The short-lived token of this browser session. It is kept in this module only: not in storage, not on window.

type Token = { id_token: string; expires_at: number; expires_in: number; uid: string };

export class SignedOutError extends Error {}

let current: Token | undefined;
let pending: Promise<Token> | undefined;

const channel = new BroadcastChannel('atelier-session');

channel.onmessage = (message) => {
  if (message.data === 'signed-out') {
    goToSignIn();
  }
};

/** goToSignIn leads to the sign-in page, and back to this page afterwards. */
export function goToSignIn(): void {
  current = undefined;
  const here = location.pathname + location.search;
  location.assign(`/signin?next=${encodeURIComponent(here)}`);
}

/** signOut ends the session of this browser, in all of its tabs. */
export async function signOut(): Promise<void> {
  const response = await fetch('/signout', {
    method: 'POST',
    headers: { 'X-Atelier-Studio': '1' },
    body: new URLSearchParams(),
    credentials: 'same-origin',
    redirect: 'manual',
  });
  if (response.type !== 'opaqueredirect') {
    throw new TypeError(`The service answered ${response.status} when it was asked to sign out.`);
  }

  channel.postMessage('signed-out');
  current = undefined;
  location.assign('/signin');
}

async function requestToken(): Promise<Token> {
  const response = await fetch('/api/v2/auth/session/token', {
    method: 'POST',
    headers: { 'X-Atelier-Studio': '1' },
    credentials: 'same-origin',
    cache: 'no-store',
  });
  if (response.status === 401) {
    goToSignIn();
    throw new SignedOutError('The session has ended.');
  }
  if (!response.ok) {
    throw new TypeError(`The service answered ${response.status} when it was asked for a token.`);
  }

  current = (await response.json()) as Token;
  return current;
}

/** getToken returns a token that is good for at least a fifth of its life; `fresh` asks for a new one in any case. */
export async function getToken(fresh = false): Promise<string> {
  if (!fresh && current && current.expires_at - Date.now() / 1000 > current.expires_in / 5) {
    return current.id_token;
  }

  pending ??= requestToken().finally(() => {
    pending = undefined;
  });
  return (await pending).id_token;
}

/** secondsUntilRenewal returns the time until getToken will ask for a new token; streams are opened anew then. */
export function secondsUntilRenewal(): number {
  if (!current) {
    return 0;
  }
  return Math.max(0, current.expires_at - Date.now() / 1000 - current.expires_in / 5);
}
