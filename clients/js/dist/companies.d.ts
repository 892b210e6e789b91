import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { Body, CallOptions, Query, Result, Transport } from './transport.js';
type Schemas = components['schemas'];
/** Companies are companies with their members, roles, mail domains and audit log. */
export declare class Companies {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists the caller's companies. */
    list(options?: CallOptions): Promise<Schemas['CompanyList']>;
    /** get reads a company. */
    get(company_id: string, options?: CallOptions): Promise<Schemas['Company']>;
    /** change changes a company's name or time zone. */
    change(company_id: string, change: Body<'changeCompany'>, options?: CallOptions): Promise<Schemas['Company']>;
    /** listMembers lists the members. */
    listMembers(company_id: string, query?: Query<'listMembers'>, options?: CallOptions): Pages<Schemas['Member']>;
    /** setMember gives a member another role. */
    setMember(company_id: string, uid: string, role: Body<'setMember'>, options?: CallOptions): Promise<Schemas['Member']>;
    /** removeMember removes a member from the company and its teams. */
    removeMember(company_id: string, uid: string, options?: CallOptions): Promise<undefined>;
    /** listRoles lists the roles. */
    listRoles(company_id: string, options?: CallOptions): Promise<Schemas['CompanyRoleList']>;
    /** setRole creates or changes a role. */
    setRole(company_id: string, role: string, draft: Body<'setRole'>, options?: CallOptions): Promise<Schemas['CompanyRole']>;
    /** deleteRole deletes a role. */
    deleteRole(company_id: string, role: string, options?: CallOptions): Promise<undefined>;
    /** listDomains lists the mail domains. */
    listDomains(company_id: string, options?: CallOptions): Promise<Schemas['DomainList']>;
    /** addDomain adds a mail domain; the answer has the TXT record to publish. */
    addDomain(company_id: string, draft: Body<'addDomain'>, options?: CallOptions): Promise<Schemas['Domain']>;
    /** removeDomain removes a mail domain. */
    removeDomain(company_id: string, domain: string, options?: CallOptions): Promise<undefined>;
    /** verifyDomain looks the TXT record up. */
    verifyDomain(company_id: string, domain: string, options?: CallOptions): Promise<Schemas['Domain']>;
    /** listAudit lists the acts in the company, the newest first. */
    listAudit(company_id: string, query?: Query<'listAudit'>, options?: CallOptions): Pages<Schemas['AuditRecord']>;
    /** getScimToken reads the SCIM token without its value. */
    getScimToken(company_id: string, options?: CallOptions): Promise<Schemas['ScimToken']>;
    /** createScimToken creates the SCIM token; a previous one stops working. */
    createScimToken(company_id: string, options?: CallOptions): Promise<Schemas['ScimToken']>;
    /** deleteScimToken deletes the SCIM token. */
    deleteScimToken(company_id: string, options?: CallOptions): Promise<undefined>;
}
/** Teams share tools, files and a balance. */
export declare class Teams {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists the teams of a company. */
    list(company_id: string, query?: Query<'listTeams'>, options?: CallOptions): Pages<Schemas['Team']>;
    /** create creates a team without members. */
    create(company_id: string, draft: Body<'createTeam'>, options?: CallOptions): Promise<Schemas['Team']>;
    /** get reads a team. */
    get(team_id: string, options?: CallOptions): Promise<Schemas['Team']>;
    /** rename renames a team. */
    rename(team_id: string, draft: Body<'renameTeam'>, options?: CallOptions): Promise<Schemas['Team']>;
    /** remove deletes a team. */
    remove(team_id: string, options?: CallOptions): Promise<undefined>;
    /** getBudget reads the budget and how much of it is spent. */
    getBudget(team_id: string, options?: CallOptions): Promise<Schemas['Budget']>;
    /** setBudget sets the budget. */
    setBudget(team_id: string, draft: Body<'setBudget'>, options?: CallOptions): Promise<Schemas['Budget']>;
    /** deleteBudget removes the budget. */
    deleteBudget(team_id: string, options?: CallOptions): Promise<undefined>;
    /** listMembers lists the members. */
    listMembers(team_id: string, query?: Query<'listTeamMembers'>, options?: CallOptions): Pages<Schemas['TeamMember']>;
    /** setMember adds a member, or gives them another role. */
    setMember(team_id: string, uid: string, role: Body<'setTeamMember'>, options?: CallOptions): Promise<Schemas['TeamMember']>;
    /** removeMember removes a member. */
    removeMember(team_id: string, uid: string, options?: CallOptions): Promise<undefined>;
    /** listRoles lists the roles. */
    listRoles(team_id: string, options?: CallOptions): Promise<Schemas['TeamRoleList']>;
    /** setRole creates or changes a role. */
    setRole(team_id: string, role: string, draft: Body<'setTeamRole'>, options?: CallOptions): Promise<Schemas['TeamRole']>;
    /** deleteRole deletes a role. */
    deleteRole(team_id: string, role: string, options?: CallOptions): Promise<undefined>;
}
/** Invitations are invitations to companies and teams. */
export declare class Invitations {
    private readonly transport;
    constructor(transport: Transport);
    /** list lists the invitations of a company. */
    list(company_id: string, query?: Query<'listInvitations'>, options?: CallOptions): Pages<Schemas['Invitation']>;
    /** create invites a person to the company or one of its teams. */
    create(company_id: string, draft: Body<'createInvitation'>, options?: CallOptions): Promise<Schemas['Invitation']>;
    /** listMine lists the invitations to the caller. */
    listMine(options?: CallOptions): Promise<Schemas['ReceivedInvitationList']>;
    /** acceptMine accepts an invitation to the caller, by its id. */
    acceptMine(invitation_id: string, options?: CallOptions): Promise<undefined>;
    /** accept accepts the invitation whose link has this token. */
    accept(draft: Body<'acceptInvitation'>, options?: CallOptions): Promise<undefined>;
    /** revoke withdraws an invitation that the company has sent. */
    revoke(invitation_id: string, options?: CallOptions): Promise<undefined>;
}
/** Reports are the usage reports of a company. */
export declare class Reports {
    private readonly transport;
    constructor(transport: Transport);
    /** usage reports usage by team, tool, person or day. `team_id` is a filter here. */
    usage(query?: Query<'reportUsage'> & {
        team_id?: string;
    }, options?: CallOptions): Pages<Result<'reportUsage'>['data'][number], Result<'reportUsage'>>;
    /** runs reports every run. */
    runs(query?: Query<'reportRuns'> & {
        team_id?: string;
    }, options?: CallOptions): Pages<Result<'reportRuns'>['data'][number], Result<'reportRuns'>>;
    /** usageCSV returns the report as CSV. */
    usageCSV(query?: Query<'reportUsage'> & {
        team_id?: string;
    }, options?: CallOptions): Promise<string>;
    /** runsCSV returns the report as CSV. */
    runsCSV(query?: Query<'reportRuns'> & {
        team_id?: string;
    }, options?: CallOptions): Promise<string>;
    private csv;
}
export {};
