import { type Connection, followEvents, type ServerEvent } from './events';

// A browser opens six connections to one host, over all of its tabs, so the tabs share one stream for each address:
// whichever tab holds the lock reads the stream and passes each event on to the others.

type Message = { kind: 'event'; event: ServerEvent } | { kind: 'connection'; connection: Connection };

type Listener = {
  onEvent: (event: ServerEvent) => void;
  onConnection?: (connection: Connection) => void;
};

/** shareEvents calls the listener with the events of a stream that all tabs share, until the signal aborts. */
export function shareEvents(url: string, listener: Listener, signal: AbortSignal): void {
  const channel = new BroadcastChannel(`atelier-live ${url}`);
  let lastId = '';

  const receive = (message: Message) => {
    if (message.kind === 'connection') {
      listener.onConnection?.(message.connection);
      return;
    }
    lastId = message.event.id || lastId;
    listener.onEvent(message.event);
  };

  const send = (message: Message) => {
    receive(message);
    channel.postMessage(message);
  };

  channel.onmessage = (message) => receive(message.data as Message);
  signal.addEventListener('abort', () => channel.close());

  const lead = async () => {
    const options = {
      signal,
      lastId,
      onConnection: (connection: Connection) => send({ kind: 'connection', connection }),
    };
    for await (const event of followEvents(url, options)) {
      send({ kind: 'event', event });
    }
  };

  navigator.locks.request(`atelier-live ${url}`, { signal }, lead).catch((error: unknown) => {
    if (!signal.aborted) {
      throw error;
    }
  });
}
