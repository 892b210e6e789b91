import { AtelierError } from './errors.js';
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
/** EventParser takes the text of a stream in pieces cut anywhere, and returns the events that are complete. */
export declare class EventParser {
    private rest;
    private id;
    private name;
    private data;
    push(piece: string): ServerEvent<string, string>[];
    private takeField;
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
export declare function readStream(transport: Transport, operation: Operation, request: Request, state: StreamState): AsyncGenerator<ServerEvent>;
/**
 * followStream yields the events of a stream and connects again when it breaks, after the last event that arrived. It ends
 * after an event that isLast names, or when the service says that there are no more.
 */
export declare function followStream(transport: Transport, operation: Operation, request: Request, lastID: string, isLast: (event: ServerEvent) => boolean): AsyncGenerator<ServerEvent>;
/** isPassing reports whether a failure of a request that changes nothing may end by itself. */
export declare function isPassing(failure: AtelierError): boolean;
