import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { Body, CallOptions, CreateOptions, Query, Result, Transport } from './transport.js';
type Schemas = components['schemas'];
/** OperatorCalls are the calls of the people who operate the installation. */
export declare class OperatorCalls {
    private readonly transport;
    constructor(transport: Transport);
    /** getStatus reads the state of the installation. */
    getStatus(options?: CallOptions): Promise<Schemas['OperatorStatus']>;
    /** listRuns lists the runs of everybody. */
    listRuns(query?: Query<'listOperatorRuns'>, options?: CallOptions): Pages<Schemas['OperatorRun']>;
    /** cancelRun cancels anybody's run. */
    cancelRun(request_id: string, options?: CallOptions): Promise<Schemas['OperatorRun']>;
    /** listPeople lists people. */
    listPeople(query?: Query<'listOperatorPeople'>, options?: CallOptions): Pages<Schemas['OperatorPerson']>;
    /** listCompanies lists companies. */
    listCompanies(query?: Query<'listOperatorCompanies'>, options?: CallOptions): Pages<Schemas['OperatorCompany']>;
    /** createGrant gives tokens to an account, once however often the request is repeated. */
    createGrant(draft: Body<'createOperatorGrant'>, options?: CreateOptions): Promise<Schemas['OperatorGrant']>;
    /** listSettings lists the settings and their sources. */
    listSettings(options?: CallOptions): Promise<Schemas['OperatorSettingList']>;
}
/** Service is the service itself. */
export declare class Service {
    private readonly transport;
    constructor(transport: Transport);
    /** getOpenAPI reads the OpenAPI document. */
    getOpenAPI(options?: CallOptions): Promise<Result<'getOpenAPI'>>;
}
export {};
