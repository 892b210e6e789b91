/** Flows are several tools as one run. A saved flow is a tool: its `id` and its `slug` run it. */
export class Flows {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists the flows that the account can use: its own, and those that other teams share with its company. */
    list(options = {}) {
        return this.transport.call('listFlows', { options });
    }
    /** create saves a flow. */
    create(draft, options = {}) {
        return this.transport.call('createFlow', { json: draft, options });
    }
    /** check finds the problems of a flow that is not saved, and its price. */
    check(draft, options = {}) {
        return this.transport.call('checkFlow', { json: draft, options });
    }
    /** draft makes a flow of the runs that led to a result, and saves nothing. */
    draft(origin, options = {}) {
        return this.transport.call('draftFlow', { json: origin, options });
    }
    /** get reads a flow with its steps. */
    get(flow_id, options = {}) {
        return this.transport.call('getFlow', { path: { flow_id }, options });
    }
    /** change saves a new version of a flow; `version` is the one that you have read. */
    change(flow_id, change, options = {}) {
        return this.transport.call('changeFlow', { path: { flow_id }, json: change, options });
    }
    /** delete deletes a flow. Runs that were accepted go on. */
    delete(flow_id, options = {}) {
        return this.transport.call('deleteFlow', { path: { flow_id }, options });
    }
    /** listVersions lists the versions of a flow, the newest first. */
    listVersions(flow_id, options = {}) {
        return this.transport.call('listFlowVersions', { path: { flow_id }, options });
    }
}
