import { type ServerEvent, type StreamOptions } from './events.js';
import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { ToolDetail, Tools } from './tools.js';
import type { CallOptions, CreateOptions, Query, Transport } from './transport.js';
import { type FileSource } from './uploads.js';
type Schemas = components['schemas'];
/** Run is the record of a run. */
export type Run = Schemas['Generation'];
/** Output is a result of a run. */
export type Output = Schemas['GenerationOutput'];
/** CreatedRun is a run that the service has accepted. */
export type CreatedRun = Schemas['GenerationCreated'];
/** InputValue is the value of an input: as the API has it, or a file to send along. */
export type InputValue = Schemas['InputValue'] | null | undefined | FileSource | FileSource[];
/** RunRequest describes a run to start. */
export interface RunRequest {
    /** The tool: its slug, its id, or its record of `client.tools.get`. With a record the form is checked against its hash. */
    tool: string | ToolDetail;
    /** The values by `fieldKey`. Files (`File`, `Blob`, bytes) are sent along; see also uploadInput and libraryInput. */
    inputs?: Record<string, InputValue>;
    num_results?: number;
    webhook_url?: string;
    metadata?: Record<string, unknown>;
    /** The calling app, shown in reports. */
    plugin?: string;
    /** An earlier run of the same flow: its finished steps with the same inputs are taken over. */
    retry_of?: string;
}
/** RunEvent is an event of a run's stream. */
export type RunEvent = ServerEvent<'status', Run> | ServerEvent<'progress', Schemas['GenerationProgress']> | ServerEvent<'preview', Schemas['GenerationPreview']> | ServerEvent<'step', Schemas['GenerationStep']> | ServerEvent<'done', Run>;
/** WaitOptions are the options of wait. */
export interface WaitOptions extends CallOptions {
    /** Called with each state of the run, its progress and its previews, and with each change of a step of a flow. */
    onEvent?: (event: RunEvent) => void;
    /** Seconds for which the service may be unreachable before wait gives up. Default: 300. */
    patience?: number;
}
/** uploadInput is the input value for an uploaded file. */
export declare function uploadInput(upload: {
    id: string;
} | string): Schemas['UploadRef'];
/** libraryInput is the input value for a result of an earlier run. */
export declare function libraryInput(output: {
    id: string;
} | string): Schemas['LibraryRef'];
/** hasEnded reports whether a run has succeeded, failed or been cancelled. */
export declare function hasEnded(run: {
    status: Run['status'];
}): boolean;
/** Runs are uses of tools (`/generate` and `/generations`). */
export declare class Runs {
    private readonly transport;
    private readonly tools;
    constructor(transport: Transport, tools: Tools);
    /**
     * create starts a run and returns at once. However often the request is repeated after failures, it starts one run: all
     * attempts carry the same idempotency key.
     */
    create(request: RunRequest, options?: CreateOptions): Promise<CreatedRun>;
    /** run starts a run, waits for its end, and returns it if it has succeeded; otherwise it throws a RunFailedError. */
    run(request: RunRequest, options?: CreateOptions & WaitOptions): Promise<Run>;
    /** previewCost returns the price of a run, and whether the account can start it now. Files may be missing. */
    previewCost(request: RunRequest, options?: CallOptions): Promise<Schemas['CostPreview']>;
    /** get reads a run. */
    get(request_id: string, query?: Query<'getGeneration'>, options?: CallOptions): Promise<Run>;
    /** list lists the account's runs, the newest first. */
    list(query?: Query<'listGenerations'>, options?: CallOptions): Pages<Run>;
    /** cancel cancels a run. A running one ends as soon as its engine stops. */
    cancel(request_id: string, options?: CallOptions): Promise<Run>;
    /** events yields the events of a run until it has ended. It connects again when the stream breaks. */
    events(request_id: string, options?: StreamOptions): AsyncGenerator<RunEvent>;
    /**
     * wait returns a run once it has ended, whatever its status. It follows the run's events, polls where there is no stream,
     * and lives through restarts of the service.
     */
    wait(run: {
        request_id: string;
    } | string, options?: WaitOptions): Promise<Run>;
    /** followOnce reads one stream of events. It returns the run if it has ended, and otherwise why the stream did. */
    private followOnce;
    /** poll reads a run once and reports its state; it returns a failure that may pass. */
    private poll;
    private sendCreate;
}
export {};
