import { AtelierError, RunFailedError } from './errors.js';
import {
  followStream,
  isPassing,
  readStream,
  type ServerEvent,
  type StreamOptions,
  type StreamState,
} from './events.js';
import { Pages } from './pages.js';
import { asFailure, Backoff, once, sleep } from './retry.js';
import type { components } from './schema.js';
import type { ToolDetail, Tools } from './tools.js';
import type { CallOptions, CreateOptions, Query, Transport } from './transport.js';
import { asBlob, type FileSource } from './uploads.js';

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
export type RunEvent =
  | ServerEvent<'status', Run>
  | ServerEvent<'progress', Schemas['GenerationProgress']>
  | ServerEvent<'preview', Schemas['GenerationPreview']>
  | ServerEvent<'step', Schemas['GenerationStep']>
  | ServerEvent<'done', Run>;

/** WaitOptions are the options of wait. */
export interface WaitOptions extends CallOptions {
  /** Called with each state of the run, its progress and its previews, and with each change of a step of a flow. */
  onEvent?: (event: RunEvent) => void;
  /** Seconds for which the service may be unreachable before wait gives up. Default: 300. */
  patience?: number;
}

/** uploadInput is the input value for an uploaded file. */
export function uploadInput(upload: { id: string } | string): Schemas['UploadRef'] {
  return { kind: 'UPLOAD_REF', id: typeof upload === 'string' ? upload : upload.id };
}

/** libraryInput is the input value for a result of an earlier run. */
export function libraryInput(output: { id: string } | string): Schemas['LibraryRef'] {
  return { kind: 'LIBRARY_REF', id: typeof output === 'string' ? output : output.id };
}

/** hasEnded reports whether a run has succeeded, failed or been cancelled. */
export function hasEnded(run: { status: Run['status'] }): boolean {
  return run.status !== 'pending';
}

/** Runs are uses of tools (`/generate` and `/generations`). */
export class Runs {
  constructor(
    private readonly transport: Transport,
    private readonly tools: Tools,
  ) {}

  /**
   * create starts a run and returns at once. However often the request is repeated after failures, it starts one run: all
   * attempts carry the same idempotency key.
   */
  async create(request: RunRequest, options: CreateOptions = {}): Promise<CreatedRun> {
    const tool = typeof request.tool === 'string' ? await this.tools.get(request.tool, options) : request.tool;
    try {
      return await this.sendCreate(request, tool, options);
    } catch (error) {
      // The tool has changed since it was read a moment ago. A refused request does not use its key up.
      const isStale = error instanceof AtelierError && error.code === 'TOOL_SCHEMA_STALE';
      if (!isStale || typeof request.tool !== 'string') {
        throw error;
      }
      return await this.sendCreate(request, await this.tools.get(tool.id, options), options);
    }
  }

  /** run starts a run, waits for its end, and returns it if it has succeeded; otherwise it throws a RunFailedError. */
  async run(request: RunRequest, options: CreateOptions & WaitOptions = {}): Promise<Run> {
    const created = await this.create(request, options);
    const run = await this.wait(created, options);
    if (run.status !== 'succeeded') {
      throw new RunFailedError(run);
    }
    return run;
  }

  /** previewCost returns the price of a run, and whether the account can start it now. Files may be missing. */
  async previewCost(request: RunRequest, options: CallOptions = {}): Promise<Schemas['CostPreview']> {
    const tool = typeof request.tool === 'string' ? await this.tools.get(request.tool, options) : request.tool;
    const { payload } = splitFiles(request, tool, true);
    return await this.transport.call('previewCost', { json: payload, options });
  }

  /** get reads a run. */
  get(request_id: string, query: Query<'getGeneration'> = {}, options: CallOptions = {}): Promise<Run> {
    return this.transport.call('getGeneration', { path: { request_id }, query, options });
  }

  /** list lists the account's runs, the newest first. */
  list(query: Query<'listGenerations'> = {}, options: CallOptions = {}): Pages<Run> {
    return new Pages((cursor) => this.transport.call('listGenerations', { query: { ...query, cursor }, options }));
  }

  /** cancel cancels a run. A running one ends as soon as its engine stops. */
  cancel(request_id: string, options: CallOptions = {}): Promise<Run> {
    return this.transport.call('cancelGeneration', { path: { request_id }, options });
  }

  /** events yields the events of a run until it has ended. It connects again when the stream breaks. */
  events(request_id: string, options: StreamOptions = {}): AsyncGenerator<RunEvent> {
    const request = { path: { request_id }, options };
    const isLast = (event: ServerEvent) => event.name === 'done';
    const events = followStream(this.transport, 'streamGeneration', request, options.lastEventID ?? '', isLast);
    return events as AsyncGenerator<RunEvent>;
  }

  /**
   * wait returns a run once it has ended, whatever its status. It follows the run's events, polls where there is no stream,
   * and lives through restarts of the service.
   */
  async wait(run: { request_id: string } | string, options: WaitOptions = {}): Promise<Run> {
    const request_id = typeof run === 'string' ? run : run.request_id;
    const limits = {
      ...this.transport.parts.retry,
      attempts: Number.POSITIVE_INFINITY,
      maxTime: options.patience ?? 300,
    };
    let backoff = new Backoff(limits);
    const state: StreamState = { lastID: '', isOver: false };
    let emptyStreams = 0;

    for (;;) {
      const lastID = state.lastID;
      let outcome = await this.followOnce(request_id, state, options);
      if (state.reconnects) {
        continue;
      }
      emptyStreams = state.lastID === lastID ? emptyStreams + 1 : 0;
      if (emptyStreams === 0) {
        backoff = new Backoff(limits);
      }

      // One broken stream is opened again. After two, streams may not work here at all, so the run is polled; and if the
      // run has ended, its last event did not reach us whole.
      if (outcome instanceof AtelierError && (emptyStreams >= 2 || state.isOver)) {
        if (!state.isOver) {
          await sleepBetween(backoff, outcome, options.signal);
        }
        outcome = await this.poll(request_id, options);
      }
      if (outcome instanceof AtelierError) {
        await sleepBetween(backoff, outcome, options.signal);
      } else if (hasEnded(outcome)) {
        return outcome;
      } else {
        backoff = new Backoff(limits);
        await sleep(outcome.retry_after_seconds, options.signal);
      }
    }
  }

  /** followOnce reads one stream of events. It returns the run if it has ended, and otherwise why the stream did. */
  private async followOnce(request_id: string, state: StreamState, options: WaitOptions): Promise<Run | AtelierError> {
    const request = { path: { request_id }, options };
    const events = readStream(this.transport, 'streamGeneration', request, state) as AsyncGenerator<RunEvent>;
    try {
      for (;;) {
        // Only the stream is tried: what onEvent throws is the caller's.
        const next = await events.next().catch((error) => asWaitFailure(error, options.signal));
        if (next instanceof AtelierError) {
          return next;
        }
        if (next.done) {
          return new AtelierError({ code: 'NETWORK', message: 'The stream of events broke off.', retryable: true });
        }
        options.onEvent?.(next.value);
        if (next.value.name === 'done') {
          return next.value.data;
        }
      }
    } finally {
      await events.return(undefined);
    }
  }

  /** poll reads a run once and reports its state; it returns a failure that may pass. */
  private async poll(request_id: string, options: WaitOptions): Promise<Run | AtelierError> {
    const record = await this.transport
      .call('getGeneration', { path: { request_id }, retry: once, options })
      .catch((error) => asWaitFailure(error, options.signal));
    if (!(record instanceof AtelierError)) {
      options.onEvent?.({ id: '', name: hasEnded(record) ? 'done' : 'status', data: record });
    }
    return record;
  }

  private sendCreate(request: RunRequest, tool: ToolDetail, options: CreateOptions): Promise<CreatedRun> {
    const { payload, files } = splitFiles(request, tool, false);
    const shared = { options };
    if (files.length === 0) {
      return this.transport.call('createGeneration', { ...shared, json: payload });
    }

    const form = new FormData();
    form.append('payload', new Blob([JSON.stringify(payload)], { type: 'application/json' }));
    let bytes = 0;
    for (const [index, file] of files.entries()) {
      bytes += file.size;
      form.append('files', file, (file as { name?: string }).name ?? `file-${index}`);
    }
    const timeout = this.transport.parts.timeout + bytes / (64 << 10);
    return this.transport.call('createGeneration', { ...shared, body: form, timeout });
  }
}

/** asWaitFailure throws failures that waiting does not end, and returns the others. */
function asWaitFailure(error: unknown, signal: AbortSignal | undefined): AtelierError {
  signal?.throwIfAborted();
  const failure = asFailure(error);
  if (!isPassing(failure)) {
    throw failure;
  }
  return failure;
}

async function sleepBetween(backoff: Backoff, failure: AtelierError, signal: AbortSignal | undefined): Promise<void> {
  const delay = backoff.delayAfter(failure);
  if (delay === undefined) {
    throw failure;
  }
  await sleep(delay, signal);
}

/** splitFiles returns the body of a create, with the files in its inputs replaced by references to parts of a form. */
function splitFiles(
  request: RunRequest,
  tool: ToolDetail,
  dropFiles: boolean,
): { payload: Schemas['CreateGenerationRequest']; files: Blob[] } {
  const files: Blob[] = [];
  const inputs: Record<string, unknown> = {};
  const refer = (source: FileSource) => {
    files.push(asBlob(source));
    return { kind: 'MULTIPART', file_index: files.length - 1 };
  };

  for (const [key, value] of Object.entries(request.inputs ?? {})) {
    if (isFileSource(value)) {
      inputs[key] = dropFiles ? undefined : refer(value);
    } else if (Array.isArray(value)) {
      const kept = (value as unknown[]).filter((item) => !dropFiles || !isFileSource(item));
      inputs[key] = kept.map((item) => (isFileSource(item) ? refer(item) : item));
    } else {
      inputs[key] = value;
    }
  }

  const payload = {
    tool_id: tool.id,
    tool_fields_hash: tool.tool_fields_hash,
    inputs: inputs as Schemas['Inputs'],
    num_results: request.num_results,
    webhook_url: request.webhook_url,
    metadata: request.metadata,
    plugin: request.plugin,
    retry_of: request.retry_of,
  };
  return { payload: payload as Schemas['CreateGenerationRequest'], files };
}

function isFileSource(value: unknown): value is FileSource {
  return value instanceof Blob || value instanceof ArrayBuffer || value instanceof Uint8Array;
}
