// A run is never started twice because an answer was lost: a request that is repeated unchanged keeps its key, also
// after a reload of the page.

type Attempt = { body: string; key: string; at: number };

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const storageKey = 'atelier-attempt';
const life = 12 * 3600 * 1000;

function readAttempt(store: Store): Attempt | undefined {
  try {
    return JSON.parse(store.getItem(storageKey) ?? '') as Attempt;
  } catch {
    return undefined;
  }
}

/** beginAttempt returns the key of a request: that of the same request whose answer has not come, or a new one. */
export function beginAttempt(body: string, store: Store = sessionStorage, now = Date.now()): string {
  const last = readAttempt(store);
  if (last?.body === body && now - last.at < life) {
    return last.key;
  }
  const key = crypto.randomUUID();
  store.setItem(storageKey, JSON.stringify({ body, key, at: now } satisfies Attempt));

  return key;
}

/** endAttempt forgets the key of a request that was accepted, so that the next one starts another run. */
export function endAttempt(store: Store = sessionStorage): void {
  store.removeItem(storageKey);
}
