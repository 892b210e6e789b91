import { AtelierError } from './errors.js';
import { asFailure, Backoff, type RetryLimits, sleep } from './retry.js';
import type { CallOptions, Operation, Request, Transport } from './transport.js';

/** ServerEvent is one event of a stream; its data is parsed JSON. */
export interface ServerEvent<Name extends string = string, Data = unknown> {
  /** The id from which a stream continues; empty if the event has none. */
  id: string;
  name: Name;
  data: Data;
}

/** StreamOptions are the options of an event stream. */
export interface StreamOptions extends CallOptions {
  /** The id of the last event that you have; the stream continues after it. */
  lastEventID?: string;
}

/** The service sends a comment every 15 seconds. A stream that is silent for three times as long is broken. */
const silence = 45;

/** The event with which a node of the service that stops ends a stream. */
const reconnectEvent = 'reconnect';

/** A connection must have lasted this many seconds before the client reconnects without a wait. */
const minStreamTime = 1;

/** EventParser takes the text of a stream in pieces cut anywhere, and returns the events that are complete. */
export class EventParser {
  private rest = '';
  private id = '';
  private name = '';
  private data: string[] = [];

  push(piece: string): ServerEvent<string, string>[] {
    const lines = (this.rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? '';
    const events = [];

    for (const line of lines) {
      if (line !== '') {
        this.takeField(line);
      } else if (this.data.length > 0) {
        events.push({ id: this.id, name: this.name || 'message', data: this.data.join('\n') });
        this.name = '';
        this.data = [];
      } else {
        this.name = '';
      }
    }

    return events;
  }

  private takeField(line: string): void {
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    switch (field) {
      case 'id':
        this.id = value;
        break;
      case 'event':
        this.name = value;
        break;
      case 'data':
        this.data.push(value);
        break;
    }
  }
}

/** StreamState is how far a stream was read, over all of its connections. */
export interface StreamState {
  /** The id of the last event; empty before the first. */
  lastID: string;
  /** Whether the service says that there are no more events (204). */
  isOver: boolean;
  /** Whether the next connection may begin without a wait, because a node of the service stops and others are there. */
  reconnects?: boolean;
}

/** readStream yields the events of one connection, until the service closes it. */
export async function* readStream(
  transport: Transport,
  operation: Operation,
  request: Request,
  state: StreamState,
): AsyncGenerator<ServerEvent> {
  const headers: Record<string, string> = { Accept: 'text/event-stream' };
  state.reconnects = false;
  if (state.lastID !== '') {
    headers['Last-Event-ID'] = state.lastID;
  }
  const { response, deadline } = await transport.open(operation, { ...request, headers });
  if (response.body === null || response.status === 204) {
    deadline.end();
    state.isOver = response.status === 204;
    return;
  }

  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  const opened = performance.now();
  deadline.extend(silence);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      deadline.pause();
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        state.lastID = event.id || state.lastID;
        if (event.name === reconnectEvent) {
          state.reconnects = performance.now() - opened >= minStreamTime * 1000;
          return;
        }
        yield { ...event, data: JSON.parse(event.data) };
      }
      deadline.extend();
    }
  } catch (error) {
    request.options?.signal?.throwIfAborted();
    throw asFailure(deadline.signal.aborted ? deadline.signal.reason : error);
  } finally {
    deadline.end();
    reader.cancel().catch(() => {});
  }
}

/**
 * followStream yields the events of a stream and connects again when it breaks, after the last event that arrived. It ends
 * after an event that isLast names, or when the service says that there are no more.
 */
export async function* followStream(
  transport: Transport,
  operation: Operation,
  request: Request,
  lastID: string,
  isLast: (event: ServerEvent) => boolean,
): AsyncGenerator<ServerEvent> {
  const signal = request.options?.signal;
  const state: StreamState = { lastID, isOver: false };
  let backoff = new Backoff(streamLimits(transport.parts.retry));

  for (;;) {
    let failure = new AtelierError({ code: 'NETWORK', message: 'The stream of events broke off.', retryable: true });
    try {
      for await (const event of readStream(transport, operation, request, state)) {
        backoff = new Backoff(streamLimits(transport.parts.retry));
        yield event;
        if (isLast(event)) {
          return;
        }
      }
      if (state.isOver) {
        return;
      }
      if (state.reconnects) {
        continue;
      }
    } catch (error) {
      signal?.throwIfAborted();
      failure = asFailure(error);
      if (!isPassing(failure)) {
        throw failure;
      }
    }

    const delay = backoff.delayAfter(failure);
    if (delay === undefined) {
      throw failure;
    }
    await sleep(delay, signal);
  }
}

/** A stream may break as often as it likes, but not without an event for the time of the limits. */
function streamLimits(limits: RetryLimits): RetryLimits {
  return { ...limits, attempts: Number.POSITIVE_INFINITY };
}

/** isPassing reports whether a failure of a request that changes nothing may end by itself. */
export function isPassing(failure: AtelierError): boolean {
  if (failure.status === 0) {
    return failure.code === 'NETWORK' || failure.code === 'TIMEOUT';
  }
  return failure.status === 408 || failure.status === 429 || failure.status >= 500;
}
