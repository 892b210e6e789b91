import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { Body, CallOptions, Query, Result, Transport } from './transport.js';
type Schemas = components['schemas'];
/** Me is the person behind the credential (`/me`, `/ledger`). */
export declare class Me {
    private readonly transport;
    constructor(transport: Transport);
    /** get reads the person, their accounts and their permissions. */
    get(options?: CallOptions): Promise<Schemas['Identity']>;
    /** delete deletes the person's account for good. The e-mail address confirms it. */
    delete(confirmation: Body<'deleteMe'>, options?: CallOptions): Promise<undefined>;
    /** export returns all data about the person as a ZIP archive. */
    export(options?: CallOptions): Promise<Blob>;
    /** claimTopUp claims the free tokens that the person may have now. */
    claimTopUp(options?: CallOptions): Promise<Schemas['TopUpResult']>;
    /** listLedger lists the movements of tokens in the account, the newest first. */
    listLedger(query?: Query<'listLedger'>, options?: CallOptions): Pages<Result<'listLedger'>['data'][number], Result<'listLedger'>>;
}
/** AccessTokens are long-lived credentials for scripts, of a person or of a company. */
export declare class AccessTokens {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists the person's access tokens, without their values. */
    list(query?: Query<'listAccessTokens'>, options?: CallOptions): Pages<Schemas['AccessToken']>;
    /** create creates an access token; the answer has its value, once. */
    create(draft: Body<'createAccessToken'>, options?: CallOptions): Promise<Schemas['AccessToken']>;
    /** delete deletes an access token, which stops working at once. */
    delete(token_id: string, options?: CallOptions): Promise<undefined>;
    /** regenerate replaces the value of an access token. */
    regenerate(token_id: string, options?: CallOptions): Promise<Schemas['AccessToken']>;
    /** listOfCompany lists the company's access tokens. */
    listOfCompany(company_id: string, query?: Query<'listCompanyAccessTokens'>, options?: CallOptions): Pages<Schemas['AccessToken']>;
    /** createForCompany creates an access token for a member; the answer has its value, once. */
    createForCompany(company_id: string, draft: Body<'createCompanyAccessToken'>, options?: CallOptions): Promise<Schemas['AccessToken']>;
    /** deleteOfCompany deletes an access token of the company. */
    deleteOfCompany(company_id: string, token_id: string, options?: CallOptions): Promise<undefined>;
    /** regenerateOfCompany replaces the value of an access token of the company. */
    regenerateOfCompany(company_id: string, token_id: string, options?: CallOptions): Promise<Schemas['AccessToken']>;
}
/** Library has the results of runs. */
export declare class Library {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists results. `team_ids` selects several teams instead of one account. */
    list(query?: Query<'listLibrary'> & {
        team_ids?: string[];
    }, options?: CallOptions): Pages<Schemas['LibraryItem']>;
    /** listMarks lists cursors at regular distances in a list of results, for scroll bars. */
    listMarks(query?: Query<'listLibraryMarks'>, options?: CallOptions): Promise<Schemas['LibraryMarks']>;
    /** get reads a result with the inputs of its run. */
    get(library_id: string, options?: CallOptions): Promise<Schemas['LibraryItemDetail']>;
    /** delete moves a result to the trash. */
    delete(library_id: string, options?: CallOptions): Promise<undefined>;
    /** restore takes a result back from the trash. */
    restore(library_id: string, options?: CallOptions): Promise<Schemas['LibraryItem']>;
    /** addFavorite marks a result as a favourite. */
    addFavorite(library_id: string, options?: CallOptions): Promise<undefined>;
    /** removeFavorite removes the mark of a favourite. */
    removeFavorite(library_id: string, options?: CallOptions): Promise<undefined>;
}
export {};
