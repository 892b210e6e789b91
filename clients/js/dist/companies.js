import { Pages } from './pages.js';
/** Companies are companies with their members, roles, mail domains and audit log. */
export class Companies {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists the caller's companies. */
    list(options = {}) {
        return this.transport.call('listCompanies', { options });
    }
    /** get reads a company. */
    get(company_id, options = {}) {
        return this.transport.call('getCompany', { path: { company_id }, options });
    }
    /** change changes a company's name or time zone. */
    change(company_id, change, options = {}) {
        return this.transport.call('changeCompany', { path: { company_id }, json: change, options });
    }
    /** listMembers lists the members. */
    listMembers(company_id, query = {}, options = {}) {
        const path = { company_id };
        return new Pages((cursor) => this.transport.call('listMembers', { path, query: { ...query, cursor }, options }));
    }
    /** setMember gives a member another role. */
    setMember(company_id, uid, role, options = {}) {
        return this.transport.call('setMember', { path: { company_id, uid }, json: role, options });
    }
    /** removeMember removes a member from the company and its teams. */
    removeMember(company_id, uid, options = {}) {
        return this.transport.call('removeMember', { path: { company_id, uid }, options });
    }
    /** listRoles lists the roles. */
    listRoles(company_id, options = {}) {
        return this.transport.call('listRoles', { path: { company_id }, options });
    }
    /** setRole creates or changes a role. */
    setRole(company_id, role, draft, options = {}) {
        return this.transport.call('setRole', { path: { company_id, role }, json: draft, options });
    }
    /** deleteRole deletes a role. */
    deleteRole(company_id, role, options = {}) {
        return this.transport.call('deleteRole', { path: { company_id, role }, options });
    }
    /** listDomains lists the mail domains. */
    listDomains(company_id, options = {}) {
        return this.transport.call('listDomains', { path: { company_id }, options });
    }
    /** addDomain adds a mail domain; the answer has the TXT record to publish. */
    addDomain(company_id, draft, options = {}) {
        return this.transport.call('addDomain', { path: { company_id }, json: draft, options });
    }
    /** removeDomain removes a mail domain. */
    removeDomain(company_id, domain, options = {}) {
        return this.transport.call('removeDomain', { path: { company_id, domain }, options });
    }
    /** verifyDomain looks the TXT record up. */
    verifyDomain(company_id, domain, options = {}) {
        return this.transport.call('verifyDomain', { path: { company_id, domain }, options });
    }
    /** listAudit lists the acts in the company, the newest first. */
    listAudit(company_id, query = {}, options = {}) {
        const path = { company_id };
        return new Pages((cursor) => this.transport.call('listAudit', { path, query: { ...query, cursor }, options }));
    }
    /** getScimToken reads the SCIM token without its value. */
    getScimToken(company_id, options = {}) {
        return this.transport.call('getScimToken', { path: { company_id }, options });
    }
    /** createScimToken creates the SCIM token; a previous one stops working. */
    createScimToken(company_id, options = {}) {
        return this.transport.call('createScimToken', { path: { company_id }, options });
    }
    /** deleteScimToken deletes the SCIM token. */
    deleteScimToken(company_id, options = {}) {
        return this.transport.call('deleteScimToken', { path: { company_id }, options });
    }
}
/** Teams share tools, files and a balance. */
export class Teams {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists the teams of a company. */
    list(company_id, query = {}, options = {}) {
        const path = { company_id };
        return new Pages((cursor) => this.transport.call('listTeams', { path, query: { ...query, cursor }, options }));
    }
    /** create creates a team without members. */
    create(company_id, draft, options = {}) {
        return this.transport.call('createTeam', { path: { company_id }, json: draft, options });
    }
    /** get reads a team. */
    get(team_id, options = {}) {
        return this.transport.call('getTeam', { path: { team_id }, options });
    }
    /** rename renames a team. */
    rename(team_id, draft, options = {}) {
        return this.transport.call('renameTeam', { path: { team_id }, json: draft, options });
    }
    /** remove deletes a team. */
    remove(team_id, options = {}) {
        return this.transport.call('removeTeam', { path: { team_id }, options });
    }
    /** getBudget reads the budget and how much of it is spent. */
    getBudget(team_id, options = {}) {
        return this.transport.call('getBudget', { path: { team_id }, options });
    }
    /** setBudget sets the budget. */
    setBudget(team_id, draft, options = {}) {
        return this.transport.call('setBudget', { path: { team_id }, json: draft, options });
    }
    /** deleteBudget removes the budget. */
    deleteBudget(team_id, options = {}) {
        return this.transport.call('deleteBudget', { path: { team_id }, options });
    }
    /** listMembers lists the members. */
    listMembers(team_id, query = {}, options = {}) {
        const path = { team_id };
        return new Pages((cursor) => this.transport.call('listTeamMembers', { path, query: { ...query, cursor }, options }));
    }
    /** setMember adds a member, or gives them another role. */
    setMember(team_id, uid, role, options = {}) {
        return this.transport.call('setTeamMember', { path: { team_id, uid }, json: role, options });
    }
    /** removeMember removes a member. */
    removeMember(team_id, uid, options = {}) {
        return this.transport.call('removeTeamMember', { path: { team_id, uid }, options });
    }
    /** listRoles lists the roles. */
    listRoles(team_id, options = {}) {
        return this.transport.call('listTeamRoles', { path: { team_id }, options });
    }
    /** setRole creates or changes a role. */
    setRole(team_id, role, draft, options = {}) {
        return this.transport.call('setTeamRole', { path: { team_id, role }, json: draft, options });
    }
    /** deleteRole deletes a role. */
    deleteRole(team_id, role, options = {}) {
        return this.transport.call('deleteTeamRole', { path: { team_id, role }, options });
    }
}
/** Invitations are invitations to companies and teams. */
export class Invitations {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** list lists the invitations of a company. */
    list(company_id, query = {}, options = {}) {
        const path = { company_id };
        return new Pages((cursor) => this.transport.call('listInvitations', { path, query: { ...query, cursor }, options }));
    }
    /** create invites a person to the company or one of its teams. */
    create(company_id, draft, options = {}) {
        return this.transport.call('createInvitation', { path: { company_id }, json: draft, options });
    }
    /** listMine lists the invitations to the caller. */
    listMine(options = {}) {
        return this.transport.call('listMyInvitations', { options });
    }
    /** acceptMine accepts an invitation to the caller, by its id. */
    acceptMine(invitation_id, options = {}) {
        return this.transport.call('acceptMyInvitation', { path: { invitation_id }, options });
    }
    /** accept accepts the invitation whose link has this token. */
    accept(draft, options = {}) {
        return this.transport.call('acceptInvitation', { json: draft, options });
    }
    /** revoke withdraws an invitation that the company has sent. */
    revoke(invitation_id, options = {}) {
        return this.transport.call('revokeInvitation', { path: { invitation_id }, options });
    }
}
/** Reports are the usage reports of a company. */
export class Reports {
    transport;
    constructor(transport) {
        this.transport = transport;
    }
    /** usage reports usage by team, tool, person or day. `team_id` is a filter here. */
    usage(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('reportUsage', { query: { ...query, cursor }, options }));
    }
    /** runs reports every run. */
    runs(query = {}, options = {}) {
        return new Pages((cursor) => this.transport.call('reportRuns', { query: { ...query, cursor }, options }));
    }
    /** usageCSV returns the report as CSV. */
    usageCSV(query = {}, options = {}) {
        return this.csv('reportUsage', query, options);
    }
    /** runsCSV returns the report as CSV. */
    runsCSV(query = {}, options = {}) {
        return this.csv('reportRuns', query, options);
    }
    csv(operation, query, options) {
        const request = { query: { ...query, format: 'csv' }, headers: { Accept: 'text/csv' }, options };
        return this.transport.send(operation, request, (response) => response.text());
    }
}
