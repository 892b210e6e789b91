import { Pages } from './pages.js';
/** OperatorCalls are the calls of the people who operate the installation. */
export class OperatorCalls {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** getStatus reads the state of the installation. */
    getStatus(options = {}) {
        return this.transport.call('getOperatorStatus', { options });
    }
    /** listRuns lists the runs of everybody. */
    listRuns(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('listOperatorRuns', { query: { ...query, cursor }, options }));
    }
    /** cancelRun cancels anybody's run. */
    cancelRun(request_id, options = {}) {
        return this.transport.call('cancelOperatorRun', { path: { request_id }, options });
    }
    /** listPeople lists people. */
    listPeople(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('listOperatorPeople', { query: { ...query, cursor }, options }));
    }
    /** listCompanies lists companies. */
    listCompanies(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('listOperatorCompanies', { query: { ...query, cursor }, options }));
    }
    /** createGrant gives tokens to an account, once however often the request is repeated. */
    createGrant(draft, options = {}) {
        return this.transport.call('createOperatorGrant', { json: draft, options });
    }
    /** listSettings lists the settings and their sources. */
    listSettings(options = {}) {
        return this.transport.call('listOperatorSettings', { options });
    }
}
/** Service is the service itself. */
export class Service {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** getOpenAPI reads the OpenAPI document. */
    getOpenAPI(options = {}) {
        return this.transport.call('getOpenAPI', { options });
    }
}
