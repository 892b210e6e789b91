import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { Body, CallOptions, Query, Result, Transport } from './transport.js';

type Schemas = components['schemas'];

/** Companies are companies with their members, roles, mail domains and audit log. */
export class Companies {
  constructor(private readonly transport: Transport) {}

  /** list lists the caller's companies. */
  list(options: CallOptions = {}): Promise<Schemas['CompanyList']> {
    return this.transport.call('listCompanies', { options });
  }

  /** get reads a company. */
  get(company_id: string, options: CallOptions = {}): Promise<Schemas['Company']> {
    return this.transport.call('getCompany', { path: { company_id }, options });
  }

  /** change changes a company's name or time zone. */
  change(company_id: string, change: Body<'changeCompany'>, options: CallOptions = {}): Promise<Schemas['Company']> {
    return this.transport.call('changeCompany', { path: { company_id }, json: change, options });
  }

  /** listMembers lists the members. */
  listMembers(
    company_id: string,
    query: Query<'listMembers'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['Member']> {
    const path = { company_id };
    return new Pages((cursor) => this.transport.call('listMembers', { path, query: { ...query, cursor }, options }));
  }

  /** setMember gives a member another role. */
  setMember(
    company_id: string,
    uid: string,
    role: Body<'setMember'>,
    options: CallOptions = {},
  ): Promise<Schemas['Member']> {
    return this.transport.call('setMember', { path: { company_id, uid }, json: role, options });
  }

  /** removeMember removes a member from the company and its teams. */
  removeMember(company_id: string, uid: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('removeMember', { path: { company_id, uid }, options });
  }

  /** listRoles lists the roles. */
  listRoles(company_id: string, options: CallOptions = {}): Promise<Schemas['CompanyRoleList']> {
    return this.transport.call('listRoles', { path: { company_id }, options });
  }

  /** setRole creates or changes a role. */
  setRole(
    company_id: string,
    role: string,
    draft: Body<'setRole'>,
    options: CallOptions = {},
  ): Promise<Schemas['CompanyRole']> {
    return this.transport.call('setRole', { path: { company_id, role }, json: draft, options });
  }

  /** deleteRole deletes a role. */
  deleteRole(company_id: string, role: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteRole', { path: { company_id, role }, options });
  }

  /** listDomains lists the mail domains. */
  listDomains(company_id: string, options: CallOptions = {}): Promise<Schemas['DomainList']> {
    return this.transport.call('listDomains', { path: { company_id }, options });
  }

  /** addDomain adds a mail domain; the answer has the TXT record to publish. */
  addDomain(company_id: string, draft: Body<'addDomain'>, options: CallOptions = {}): Promise<Schemas['Domain']> {
    return this.transport.call('addDomain', { path: { company_id }, json: draft, options });
  }

  /** removeDomain removes a mail domain. */
  removeDomain(company_id: string, domain: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('removeDomain', { path: { company_id, domain }, options });
  }

  /** verifyDomain looks the TXT record up. */
  verifyDomain(company_id: string, domain: string, options: CallOptions = {}): Promise<Schemas['Domain']> {
    return this.transport.call('verifyDomain', { path: { company_id, domain }, options });
  }

  /** listAudit lists the acts in the company, the newest first. */
  listAudit(
    company_id: string,
    query: Query<'listAudit'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['AuditRecord']> {
    const path = { company_id };
    return new Pages((cursor) => this.transport.call('listAudit', { path, query: { ...query, cursor }, options }));
  }

  /** getScimToken reads the SCIM token without its value. */
  getScimToken(company_id: string, options: CallOptions = {}): Promise<Schemas['ScimToken']> {
    return this.transport.call('getScimToken', { path: { company_id }, options });
  }

  /** createScimToken creates the SCIM token; a previous one stops working. */
  createScimToken(company_id: string, options: CallOptions = {}): Promise<Schemas['ScimToken']> {
    return this.transport.call('createScimToken', { path: { company_id }, options });
  }

  /** deleteScimToken deletes the SCIM token. */
  deleteScimToken(company_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteScimToken', { path: { company_id }, options });
  }
}

/** Teams share tools, files and a balance. */
export class Teams {
  constructor(private readonly transport: Transport) {}

  /** list lists the teams of a company. */
  list(company_id: string, query: Query<'listTeams'> = {}, options: CallOptions = {}): Pages<Schemas['Team']> {
    const path = { company_id };
    return new Pages((cursor) => this.transport.call('listTeams', { path, query: { ...query, cursor }, options }));
  }

  /** create creates a team without members. */
  create(company_id: string, draft: Body<'createTeam'>, options: CallOptions = {}): Promise<Schemas['Team']> {
    return this.transport.call('createTeam', { path: { company_id }, json: draft, options });
  }

  /** get reads a team. */
  get(team_id: string, options: CallOptions = {}): Promise<Schemas['Team']> {
    return this.transport.call('getTeam', { path: { team_id }, options });
  }

  /** rename renames a team. */
  rename(team_id: string, draft: Body<'renameTeam'>, options: CallOptions = {}): Promise<Schemas['Team']> {
    return this.transport.call('renameTeam', { path: { team_id }, json: draft, options });
  }

  /** remove deletes a team. */
  remove(team_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('removeTeam', { path: { team_id }, options });
  }

  /** getBudget reads the budget and how much of it is spent. */
  getBudget(team_id: string, options: CallOptions = {}): Promise<Schemas['Budget']> {
    return this.transport.call('getBudget', { path: { team_id }, options });
  }

  /** setBudget sets the budget. */
  setBudget(team_id: string, draft: Body<'setBudget'>, options: CallOptions = {}): Promise<Schemas['Budget']> {
    return this.transport.call('setBudget', { path: { team_id }, json: draft, options });
  }

  /** deleteBudget removes the budget. */
  deleteBudget(team_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteBudget', { path: { team_id }, options });
  }

  /** listMembers lists the members. */
  listMembers(
    team_id: string,
    query: Query<'listTeamMembers'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['TeamMember']> {
    const path = { team_id };
    return new Pages((cursor) =>
      this.transport.call('listTeamMembers', { path, query: { ...query, cursor }, options }),
    );
  }

  /** setMember adds a member, or gives them another role. */
  setMember(
    team_id: string,
    uid: string,
    role: Body<'setTeamMember'>,
    options: CallOptions = {},
  ): Promise<Schemas['TeamMember']> {
    return this.transport.call('setTeamMember', { path: { team_id, uid }, json: role, options });
  }

  /** removeMember removes a member. */
  removeMember(team_id: string, uid: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('removeTeamMember', { path: { team_id, uid }, options });
  }

  /** listRoles lists the roles. */
  listRoles(team_id: string, options: CallOptions = {}): Promise<Schemas['TeamRoleList']> {
    return this.transport.call('listTeamRoles', { path: { team_id }, options });
  }

  /** setRole creates or changes a role. */
  setRole(
    team_id: string,
    role: string,
    draft: Body<'setTeamRole'>,
    options: CallOptions = {},
  ): Promise<Schemas['TeamRole']> {
    return this.transport.call('setTeamRole', { path: { team_id, role }, json: draft, options });
  }

  /** deleteRole deletes a role. */
  deleteRole(team_id: string, role: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('deleteTeamRole', { path: { team_id, role }, options });
  }
}

/** Invitations are invitations to companies and teams. */
export class Invitations {
  constructor(private readonly transport: Transport) {}

  /** list lists the invitations of a company. */
  list(
    company_id: string,
    query: Query<'listInvitations'> = {},
    options: CallOptions = {},
  ): Pages<Schemas['Invitation']> {
    const path = { company_id };
    return new Pages((cursor) =>
      this.transport.call('listInvitations', { path, query: { ...query, cursor }, options }),
    );
  }

  /** create invites a person to the company or one of its teams. */
  create(
    company_id: string,
    draft: Body<'createInvitation'>,
    options: CallOptions = {},
  ): Promise<Schemas['Invitation']> {
    return this.transport.call('createInvitation', { path: { company_id }, json: draft, options });
  }

  /** listMine lists the invitations to the caller. */
  listMine(options: CallOptions = {}): Promise<Schemas['ReceivedInvitationList']> {
    return this.transport.call('listMyInvitations', { options });
  }

  /** acceptMine accepts an invitation to the caller, by its id. */
  acceptMine(invitation_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('acceptMyInvitation', { path: { invitation_id }, options });
  }

  /** accept accepts the invitation whose link has this token. */
  accept(draft: Body<'acceptInvitation'>, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('acceptInvitation', { json: draft, options });
  }

  /** revoke withdraws an invitation that the company has sent. */
  revoke(invitation_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('revokeInvitation', { path: { invitation_id }, options });
  }
}

/** Reports are the usage reports of a company. */
export class Reports {
  constructor(private readonly transport: Transport) {}

  /** usage reports usage by team, tool, person or day. `team_id` is a filter here. */
  usage(
    query: Query<'reportUsage'> & { team_id?: string } = {},
    options: CallOptions = {},
  ): Pages<Result<'reportUsage'>['data'][number], Result<'reportUsage'>> {
    return new Pages((cursor) => this.transport.call('reportUsage', { query: { ...query, cursor }, options }));
  }

  /** runs reports every run. */
  runs(
    query: Query<'reportRuns'> & { team_id?: string } = {},
    options: CallOptions = {},
  ): Pages<Result<'reportRuns'>['data'][number], Result<'reportRuns'>> {
    return new Pages((cursor) => this.transport.call('reportRuns', { query: { ...query, cursor }, options }));
  }

  /** usageCSV returns the report as CSV. */
  usageCSV(query: Query<'reportUsage'> & { team_id?: string } = {}, options: CallOptions = {}): Promise<string> {
    return this.csv('reportUsage', query, options);
  }

  /** runsCSV returns the report as CSV. */
  runsCSV(query: Query<'reportRuns'> & { team_id?: string } = {}, options: CallOptions = {}): Promise<string> {
    return this.csv('reportRuns', query, options);
  }

  private csv(operation: 'reportUsage' | 'reportRuns', query: object, options: CallOptions): Promise<string> {
    const request = { query: { ...query, format: 'csv' }, headers: { Accept: 'text/csv' }, options };
    return this.transport.send(operation, request, (response) => response.text());
  }
}
