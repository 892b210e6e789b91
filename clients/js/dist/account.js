import { Pages } from './pages.js';
/** Me is the person behind the credential (`/me`, `/ledger`). */
export class Me {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** get reads the person, their accounts and their permissions. */
    get(options = {}) {
        return this.transport.call('getMe', { options });
    }
    /** delete deletes the person's account for good. The e-mail address confirms it. */
    delete(confirmation, options = {}) {
        return this.transport.call('deleteMe', { json: confirmation, options });
    }
    /** export returns all data about the person as a ZIP archive. */
    export(options = {}) {
        const request = { headers: { Accept: 'application/zip' }, timeout: 600, options };
        return this.transport.send('exportMe', request, (response) => response.blob());
    }
    /** claimTopUp claims the free tokens that the person may have now. */
    claimTopUp(options = {}) {
        return this.transport.call('claimTopUp', { options });
    }
    /** listLedger lists the movements of tokens in the account, the newest first. */
    listLedger(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('listLedger', { query: { ...query, cursor }, options }));
    }
}
/** AccessTokens are long-lived credentials for scripts, of a person or of a company. */
export class AccessTokens {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists the person's access tokens, without their values. */
    list(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('listAccessTokens', { query: { ...query, cursor }, options }));
    }
    /** create creates an access token; the answer has its value, once. */
    create(draft, options = {}) {
        return this.transport.call('createAccessToken', { json: draft, options });
    }
    /** delete deletes an access token, which stops working at once. */
    delete(token_id, options = {}) {
        return this.transport.call('deleteAccessToken', { path: { token_id }, options });
    }
    /** regenerate replaces the value of an access token. */
    regenerate(token_id, options = {}) {
        return this.transport.call('regenerateAccessToken', { path: { token_id }, options });
    }
    /** listOfCompany lists the company's access tokens. */
    listOfCompany(company_id, query = {}, options = {}) {
        const path = { company_id };
        return new Pages((cursor) => this.transport.call('listCompanyAccessTokens', { path, query: { ...query, cursor }, options }));
    }
    /** createForCompany creates an access token for a member; the answer has its value, once. */
    createForCompany(company_id, draft, options = {}) {
        return this.transport.call('createCompanyAccessToken', { path: { company_id }, json: draft, options });
    }
    /** deleteOfCompany deletes an access token of the company. */
    deleteOfCompany(company_id, token_id, options = {}) {
        return this.transport.call('deleteCompanyAccessToken', { path: { company_id, token_id }, options });
    }
    /** regenerateOfCompany replaces the value of an access token of the company. */
    regenerateOfCompany(company_id, token_id, options = {}) {
        return this.transport.call('regenerateCompanyAccessToken', { path: { company_id, token_id }, options });
    }
}
/** Library has the results of runs. */
export class Library {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists results. `team_ids` selects several teams instead of one account. */
    list(query = {}, options = {}) {
        const { team_ids, ...rest } = query;
        const selected = team_ids === undefined ? options : { ...options, team_id: team_ids.join(',') };
        return new Pages((cursor) => this.transport.call('listLibrary', { query: { ...rest, cursor }, options: selected }));
    }
    /** listMarks lists cursors at regular distances in a list of results, for scroll bars. */
    listMarks(query = {}, options = {}) {
        return this.transport.call('listLibraryMarks', { query, options });
    }
    /** get reads a result with the inputs of its run. */
    get(library_id, options = {}) {
        return this.transport.call('getLibraryItem', { path: { library_id }, options });
    }
    /** delete moves a result to the trash. */
    delete(library_id, options = {}) {
        return this.transport.call('deleteLibraryItem', { path: { library_id }, options });
    }
    /** restore takes a result back from the trash. */
    restore(library_id, options = {}) {
        return this.transport.call('restoreLibraryItem', { path: { library_id }, options });
    }
    /** addFavorite marks a result as a favourite. */
    addFavorite(library_id, options = {}) {
        return this.transport.call('addFavorite', { path: { library_id }, options });
    }
    /** removeFavorite removes the mark of a favourite. */
    removeFavorite(library_id, options = {}) {
        return this.transport.call('removeFavorite', { path: { library_id }, options });
    }
}
