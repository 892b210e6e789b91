import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { Body, CallOptions, CreateOptions, Query, Result, Transport } from './transport.js';

type Schemas = components['schemas'];

/** OperatorCalls are the calls of the people who operate the installation. */
export class OperatorCalls {
  constructor(private readonly transport: Transport) {}

  /** getStatus reads the state of the installation. */
  getStatus(options: CallOptions = {}): Promise<Schemas['OperatorStatus']> {
    return this.transport.call('getOperatorStatus', { options });
  }

  /** listRuns lists the runs of everybody. */
  listRuns(query: Query<'listOperatorRuns'> = {}, options: CallOptions = {}): Pages<Schemas['OperatorRun']> {
    return new Pages((cursor) => this.transport.call('listOperatorRuns', { query: { ...query, cursor }, options }));
  }

  /** cancelRun cancels anybody's run. */
  cancelRun(request_id: string, options: CallOptions = {}): Promise<Schemas['OperatorRun']> {
    return this.transport.call('cancelOperatorRun', { path: { request_id }, options });
  }

  /** listPeople lists people. */
  listPeople(query: Query<'listOperatorPeople'> = {}, options: CallOptions = {}): Pages<Schemas['OperatorPerson']> {
    return new Pages((cursor) => this.transport.call('listOperatorPeople', { query: { ...query, cursor }, options }));
  }

  /** listCompanies lists companies. */
  listCompanies(
    query: Query<'listOperatorCompanies'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['OperatorCompany']> {
    return new Pages((cursor) =>
      this.transport.call('listOperatorCompanies', { query: { ...query, cursor }, options }),
    );
  }

  /** createGrant gives tokens to an account, once however often the request is repeated. */
  createGrant(draft: Body<'createOperatorGrant'>, options: CreateOptions = {}): Promise<Schemas['OperatorGrant']> {
    return this.transport.call('createOperatorGrant', { json: draft, options });
  }

  /** listSettings lists the settings and their sources. */
  listSettings(options: CallOptions = {}): Promise<Schemas['OperatorSettingList']> {
    return this.transport.call('listOperatorSettings', { options });
  }
}

/** Service is the service itself. */
export class Service {
  constructor(private readonly transport: Transport) {}

  /** getOpenAPI reads the OpenAPI document. */
  getOpenAPI(options: CallOptions = {}): Promise<Result<'getOpenAPI'>> {
    return this.transport.call('getOpenAPI', { options });
  }
}
