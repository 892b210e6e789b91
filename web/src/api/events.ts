import { getToken, SignedOutError, secondsUntilRenewal } from './session';

/** The event with which a node of the service that stops ends a stream: other nodes are there. */
const reconnectEvent = 'reconnect';

/** A connection must have lasted this many milliseconds before the next one begins without a wait. */
const minStreamTime = 1000;

/** ServerEvent is one event of a stream. */
export type ServerEvent = { id: string; event: string; data: string };

/** EventParser takes the text of a stream in pieces cut anywhere, and returns the events that are complete. */
export class EventParser {
  private rest = '';

  push(piece: string): ServerEvent[] {
    this.rest += piece.replaceAll('\r', '');
    const events: ServerEvent[] = [];

    for (let end = this.rest.indexOf('\n\n'); end >= 0; end = this.rest.indexOf('\n\n')) {
      const event = parseBlock(this.rest.slice(0, end));
      this.rest = this.rest.slice(end + 2);
      if (event.data !== '') {
        events.push(event);
      }
    }

    return events;
  }
}

function parseBlock(block: string): ServerEvent {
  const event: ServerEvent = { id: '', event: 'message', data: '' };

  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) {
      continue;
    }
    const value = line.slice(colon + 1).replace(/^ /, '');
    switch (line.slice(0, colon)) {
      case 'id':
        event.id = value;
        break;
      case 'event':
        event.event = value;
        break;
      case 'data':
        event.data += (event.data ? '\n' : '') + value;
        break;
    }
  }

  return event;
}

/** Connection says whether a stream is open, or when the next attempt will be made. */
export type Connection = { open: true } | { open: false; retryAt: number };

type FollowOptions = {
  signal: AbortSignal;
  lastId?: string;
  onConnection?: (connection: Connection) => void;
};

/**
 * followEvents yields the events of a stream until the signal aborts, and connects again by itself: after a break with
 * a growing delay, and at once before the token expires or when a node of the service stops. EventSource cannot send a
 * header, hence fetch.
 */
export async function* followEvents(url: string, options: FollowOptions): AsyncGenerator<ServerEvent> {
  let lastId = options.lastId ?? '';
  let delay = 500;

  while (!options.signal.aborted) {
    const renewal = new AbortController();
    let nodeStops = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const token = await getToken();
      timer = setTimeout(() => renewal.abort(), (secondsUntilRenewal() + 1) * 1000);
      const response = await fetch(url, {
        headers: {
          Authorization: `Bearer ${token}`,
          Accept: 'text/event-stream',
          ...(lastId ? { 'Last-Event-ID': lastId } : {}),
        },
        signal: AbortSignal.any([options.signal, renewal.signal]),
        cache: 'no-store',
        // Changes can wait for what the page shows first.
        priority: 'low',
      });
      if (response.status === 204) {
        return;
      }
      if (response.status === 401) {
        await getToken(true);
        throw new TypeError('The token was refused.');
      }
      if (!response.ok || !response.body) {
        throw new TypeError(`The stream was refused with ${response.status}.`);
      }

      options.onConnection?.({ open: true });
      const opened = performance.now();
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        delay = 500;
        for (const event of parser.push(piece.value)) {
          lastId = event.id || lastId;
          if (event.event === reconnectEvent) {
            nodeStops = performance.now() - opened >= minStreamTime;
            continue;
          }
          yield event;
        }
      }
    } catch (error) {
      if (options.signal.aborted || error instanceof SignedOutError) {
        return;
      }
      if (renewal.signal.aborted) {
        continue;
      }
    } finally {
      clearTimeout(timer);
    }

    if (nodeStops) {
      continue;
    }
    const wait = delay + Math.random() * 300;
    options.onConnection?.({ open: false, retryAt: Date.now() + wait });
    await pause(wait, options.signal);
    delay = Math.min(delay * 2, 15_000);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener('online', done);
      removeEventListener('atelier-retry', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener('online', done);
    addEventListener('atelier-retry', done);
    signal.addEventListener('abort', done);
  });
}

/** retryNow ends the wait of streams that are between two attempts. */
export function retryNow(): void {
  dispatchEvent(new Event('atelier-retry'));
}
