import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { Body, CallOptions, Query, Result, Transport } from './transport.js';

type Schemas = components['schemas'];

/** Me is the person behind the credential (`/me`, `/ledger`). */
export class Me {
  constructor(private readonly transport: Transport) {}

  /** get reads the person, their accounts and their permissions. */
  get(options: CallOptions = {}): Promise<Schemas['Identity']> {
    return this.transport.call('getMe', { options });
  }

  /** delete deletes the person's account for good. The e-mail address confirms it. */
  delete(confirmation: Body<'deleteMe'>, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteMe', { json: confirmation, options });
  }

  /** export returns all data about the person as a ZIP archive. */
  export(options: CallOptions = {}): Promise<Blob> {
    const request = { headers: { Accept: 'application/zip' }, timeout: 600, options };
    return this.transport.send('exportMe', request, (response) => response.blob());
  }

  /** claimTopUp claims the free tokens that the person may have now. */
  claimTopUp(options: CallOptions = {}): Promise<Schemas['TopUpResult']> {
    return this.transport.call('claimTopUp', { options });
  }

  /** listLedger lists the movements of tokens in the account, the newest first. */
  listLedger(
    query: Query<'listLedger'> = {},
    options: CallOptions = {},
  ): Pages<Result<'listLedger'>['data'][number], Result<'listLedger'>> {
    return new Pages((cursor) => this.transport.call('listLedger', { query: { ...query, cursor }, options }));
  }
}

/** AccessTokens are long-lived credentials for scripts, of a person or of a company. */
export class AccessTokens {
  constructor(private readonly transport: Transport) {}

  /** list lists the person's access tokens, without their values. */
  list(query: Query<'listAccessTokens'> = {}, options: CallOptions = {}): Pages<Schemas['AccessToken']> {
    return new Pages((cursor) => this.transport.call('listAccessTokens', { query: { ...query, cursor }, options }));
  }

  /** create creates an access token; the answer has its value, once. */
  create(draft: Body<'createAccessToken'>, options: CallOptions = {}): Promise<Schemas['AccessToken']> {
    return this.transport.call('createAccessToken', { json: draft, options });
  }

  /** delete deletes an access token, which stops working at once. */
  delete(token_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteAccessToken', { path: { token_id }, options });
  }

  /** regenerate replaces the value of an access token. */
  regenerate(token_id: string, options: CallOptions = {}): Promise<Schemas['AccessToken']> {
    return this.transport.call('regenerateAccessToken', { path: { token_id }, options });
  }

  /** listOfCompany lists the company's access tokens. */
  listOfCompany(
    company_id: string,
    query: Query<'listCompanyAccessTokens'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['AccessToken']> {
    const path = { company_id };
    return new Pages((cursor) =>
      this.transport.call('listCompanyAccessTokens', { path, query: { ...query, cursor }, options }),
    );
  }

  /** createForCompany creates an access token for a member; the answer has its value, once. */
  createForCompany(
    company_id: string,
    draft: Body<'createCompanyAccessToken'>,
    options: CallOptions = {},
  ): Promise<Schemas['AccessToken']> {
    return this.transport.call('createCompanyAccessToken', { path: { company_id }, json: draft, options });
  }

  /** deleteOfCompany deletes an access token of the company. */
  deleteOfCompany(company_id: string, token_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteCompanyAccessToken', { path: { company_id, token_id }, options });
  }

  /** regenerateOfCompany replaces the value of an access token of the company. */
  regenerateOfCompany(
    company_id: string,
    token_id: string,
    options: CallOptions = {},
  ): Promise<Schemas['AccessToken']> {
    return this.transport.call('regenerateCompanyAccessToken', { path: { company_id, token_id }, options });
  }
}

/** Library has the results of runs. */
export class Library {
  constructor(private readonly transport: Transport) {}

  /** list lists results. `team_ids` selects several teams instead of one account. */
  list(
    query: Query<'listLibrary'> & { team_ids?: string[] } = {},
    options: CallOptions = {},
  ): Pages<Schemas['LibraryItem']> {
    const { team_ids, ...rest } = query;
    const selected = team_ids === undefined ? options : { ...options, team_id: team_ids.join(',') };
    return new Pages((cursor) => this.transport.call('listLibrary', { query: { ...rest, cursor }, options: selected }));
  }

  /** listMarks lists cursors at regular distances in a list of results, for scroll bars. */
  listMarks(query: Query<'listLibraryMarks'> = {}, options: CallOptions = {}): Promise<Schemas['LibraryMarks']> {
    return this.transport.call('listLibraryMarks', { query, options });
  }

  /** get reads a result with the inputs of its run. */
  get(library_id: string, options: CallOptions = {}): Promise<Schemas['LibraryItemDetail']> {
    return this.transport.call('getLibraryItem', { path: { library_id }, options });
  }

  /** delete moves a result to the trash. */
  delete(library_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteLibraryItem', { path: { library_id }, options });
  }

  /** restore takes a result back from the trash. */
  restore(library_id: string, options: CallOptions = {}): Promise<Schemas['LibraryItem']> {
    return this.transport.call('restoreLibraryItem', { path: { library_id }, options });
  }

  /** addFavorite marks a result as a favourite. */
  addFavorite(library_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('addFavorite', { path: { library_id }, options });
  }

  /** removeFavorite removes the mark of a favourite. */
  removeFavorite(library_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('removeFavorite', { path: { library_id }, options });
  }
}
