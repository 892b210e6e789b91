import type { components } from './schema.js';
import type { Body, CallOptions, Transport } from './transport.js';

type Schemas = components['schemas'];

/** Flows are several tools as one run. A saved flow is a tool: its `id` and its `slug` run it. */
export class Flows {
  constructor(private readonly transport: Transport) {}

  /** list lists the flows that the account can use: its own, and those that other teams share with its company. */
  list(options: CallOptions = {}): Promise<Schemas['FlowList']> {
    return this.transport.call('listFlows', { options });
  }

  /** create saves a flow. */
  create(draft: Body<'createFlow'>, options: CallOptions = {}): Promise<Schemas['Flow']> {
    return this.transport.call('createFlow', { json: draft, options });
  }

  /** check finds the problems of a flow that is not saved, and its price. */
  check(draft: Body<'checkFlow'>, options: CallOptions = {}): Promise<Schemas['FlowCheck']> {
    return this.transport.call('checkFlow', { json: draft, options });
  }

  /** draft makes a flow of the runs that led to a result, and saves nothing. */
  draft(origin: Body<'draftFlow'>, options: CallOptions = {}): Promise<Schemas['FlowDraft']> {
    return this.transport.call('draftFlow', { json: origin, options });
  }

  /** get reads a flow with its steps. */
  get(flow_id: string, options: CallOptions = {}): Promise<Schemas['Flow']> {
    return this.transport.call('getFlow', { path: { flow_id }, options });
  }

  /** change saves a new version of a flow; `version` is the one that you have read. */
  change(flow_id: string, change: Body<'changeFlow'>, options: CallOptions = {}): Promise<Schemas['Flow']> {
    return this.transport.call('changeFlow', { path: { flow_id }, json: change, options });
  }

  /** delete deletes a flow. Runs that were accepted go on. */
  delete(flow_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteFlow', { path: { flow_id }, options });
  }

  /** listVersions lists the versions of a flow, the newest first. */
  listVersions(flow_id: string, options: CallOptions = {}): Promise<Schemas['FlowVersionList']> {
    return this.transport.call('listFlowVersions', { path: { flow_id }, options });
  }
}
