package companyadmin

import (
	"context"
	"slices"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// The refusals. Resources of other companies and resources that do not exist get
// the same answer.
var (
	errNoCompany    = fault.New(fault.NotFound, "There is no such company.")
	errNoTeam       = fault.New(fault.NotFound, "There is no such team.")
	errNoMember     = fault.New(fault.NotFound, "There is no such member.")
	errNoInvitation = fault.New(fault.NotFound, "There is no such invitation.")

	errPermission = fault.New(fault.Forbidden, "Your role does not allow this.").With("reason", "permission")
	errLimits     = fault.New(fault.Forbidden, "Your own role has narrower limits than this. Someone who manages all teams of the company can set wider ones.").With("reason", "limits")
	errPlugin     = fault.New(fault.PluginNotAllowed, "Your role in this team does not allow this app. Ask an admin of the team.")
)

// ErrLastAdmin refuses a change after which no member could manage the company's
// members.
var ErrLastAdmin = fault.New(fault.Forbidden, "The company must keep at least one member who can manage its members.").With("reason", "last_admin")

// companyAccess is the caller's membership in a company as the current
// transaction reads it. The operator has a role with all permissions.
type companyAccess struct {
	company.Membership
	caller principal.Principal
}

// companyRule returns nil if the caller may do something in the company.
type companyRule func(companyAccess) error

func allowMembers(companyAccess) error { return nil }

func requireManageMembers(c companyAccess) error { return c.requirePermission(company.ManageMembers) }

func requireManageTeams(c companyAccess) error { return c.requirePermission(company.ManageTeams) }

func (c companyAccess) requirePermission(p company.Permission) error {
	if !c.Role.May(p) {
		return errPermission
	}
	return nil
}

// authorizeCompany reads the caller's membership in a company and applies the
// rule to it. Callers who are not members get the answer that there is no such
// company.
func authorizeCompany(ctx context.Context, tx *sqldb.Tx, caller principal.Principal, companyID string, rule companyRule) (companyAccess, error) {
	c := companyAccess{caller: caller}
	if caller.Operator {
		found, err := company.ByID(ctx, tx, companyID)
		c.Company = found
		c.Role.Permissions = company.CompanyPermissions
		return c, err
	}

	m, err := FindMembership(ctx, tx, caller.PersonID, companyID)
	if err != nil {
		return c, err
	}
	if m == nil {
		return c, errNoCompany
	}
	c.Membership = *m
	return c, rule(c)
}

// FindMembership finds a person's membership in a company, nil if they are not a
// member.
func FindMembership(ctx context.Context, tx *sqldb.Tx, personID, companyID string) (*company.Membership, error) {
	if !ids.Valid(personID) {
		return nil, nil
	}
	all, err := company.CompanyMemberships(ctx, tx, personID)
	if i := slices.IndexFunc(all, func(m company.Membership) bool { return m.Company.ID == companyID }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}

// requirePermissions refuses to grant permissions that the caller lacks. It also
// protects members and roles with such permissions from the caller's changes.
func (c companyAccess) requirePermissions(perms []company.Permission) error {
	for _, p := range perms {
		if err := c.requirePermission(p); err != nil {
			return err
		}
	}
	return nil
}

// requireRole is requirePermissions for the permissions of a role.
func (c companyAccess) requireRole(ctx context.Context, tx *sqldb.Tx, name string) error {
	r, err := findRole(ctx, tx, c.Company.ID, name)
	if err != nil {
		return err
	}
	return c.requirePermissions(r.Permissions)
}

// requireRoleOf is requirePermissions for the permissions that a person has in
// the company.
func (c companyAccess) requireRoleOf(ctx context.Context, tx *sqldb.Tx, personID string) error {
	m, err := FindMembership(ctx, tx, personID, c.Company.ID)
	if err != nil || m == nil {
		return err
	}
	return c.requirePermissions(m.Role.Permissions)
}

// roleNameOf returns the name of a person's role in the company, "" if they are
// not a member.
func (c companyAccess) roleNameOf(ctx context.Context, tx *sqldb.Tx, personID string) (string, error) {
	m, err := FindMembership(ctx, tx, personID, c.Company.ID)
	if err != nil || m == nil {
		return "", err
	}
	return m.Role.Name, nil
}

// requireMember refuses people from outside the company: they join by an
// invitation or by their mail domain, with their consent. The operator may add
// anyone.
func (c companyAccess) requireMember(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if c.caller.Operator {
		return nil
	}
	m, err := FindMembership(ctx, tx, personID, c.Company.ID)
	if err == nil && m == nil {
		err = errNoMember
	}
	return err
}

// requireAdminLeft refuses a change, already made in tx, after which the company
// has no member who can manage members. The operator may make such a change.
func (c companyAccess) requireAdminLeft(ctx context.Context, tx *sqldb.Tx) error {
	if c.caller.Operator || !c.Role.May(company.ManageMembers) {
		return nil
	}
	left, err := company.HasAdmin(ctx, tx, c.Company.ID)
	if err == nil && !left {
		err = ErrLastAdmin
	}
	return err
}

// teamAccess is the caller's membership in a team and its company as the current
// transaction reads it.
type teamAccess struct {
	companyAccess
	team company.Team
	role *company.TeamRole // in the team; nil: not a member of the team
}

// teamRule returns nil if the caller may do something in the team.
type teamRule func(teamAccess) error

// allowCompanyMembers allows every member of the company.
func allowCompanyMembers(teamAccess) error { return nil }

// requireManageAllTeams allows callers who may create and remove teams.
func requireManageAllTeams(t teamAccess) error { return requireManageTeams(t.companyAccess) }

// requireTeamMember allows members of the team and callers who manage all teams.
func requireTeamMember(t teamAccess) error {
	if t.Role.May(company.ManageTeams) {
		return nil
	}
	if t.role == nil {
		return errPermission
	}
	return t.requireAllowedApp()
}

// requireManageTeam allows callers who manage this team or all teams.
func requireManageTeam(t teamAccess) error {
	if t.Role.May(company.ManageTeams) {
		return nil
	}
	if t.role == nil || !t.role.May(company.ManageTeam) {
		return errPermission
	}
	return t.requireAllowedApp()
}

// requireManageBilling allows callers who manage the company's billing.
func requireManageBilling(t teamAccess) error { return t.requirePermission(company.ManageBilling) }

// requireViewBudget allows callers who manage the company's billing or this team.
func requireViewBudget(t teamAccess) error {
	if t.Role.May(company.ManageBilling) {
		return nil
	}
	if t.role == nil || !t.role.May(company.ManageTeam) {
		return errPermission
	}
	return t.requireAllowedApp()
}

// requireAllowedApp refuses an app that the caller's role in the team does not
// allow.
func (t teamAccess) requireAllowedApp() error {
	if t.caller.UsesPlugin() && !t.role.AllowsApp(t.caller.Plugin) {
		return errPlugin
	}
	return nil
}

// authorizeTeam reads the caller's membership in a team and applies the rule to
// it. Callers who are not members of the company get the answer that there is no
// such team.
func authorizeTeam(ctx context.Context, tx *sqldb.Tx, caller principal.Principal, teamID string, rule teamRule) (t teamAccess, err error) {
	if t.team, err = company.TeamByID(ctx, tx, teamID); err == nil {
		t.companyAccess, err = authorizeCompany(ctx, tx, caller, t.team.CompanyID, allowMembers)
	}
	if fault.Is(err, fault.NotFound) {
		err = errNoTeam
	}
	if err != nil || caller.Operator {
		return t, err
	}

	account, err := FindTeamAccount(ctx, tx, caller.PersonID, teamID)
	if err != nil {
		return t, err
	}
	if account != nil {
		t.role = &account.Role
	}
	return t, rule(t)
}

// FindTeamAccount finds a person's membership in a team, nil if they are not a
// member.
func FindTeamAccount(ctx context.Context, tx *sqldb.Tx, personID, teamID string) (*company.TeamMembership, error) {
	if !ids.Valid(personID) {
		return nil, nil
	}
	all, err := company.TeamMemberships(ctx, tx, personID)
	if i := slices.IndexFunc(all, func(a company.TeamMembership) bool { return a.Team.ID == teamID }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}

// requireTeamPermissions is requirePermissions for permissions in a team. Callers
// who manage all teams have all of them.
func (t teamAccess) requireTeamPermissions(perms []company.Permission) error {
	if t.Role.May(company.ManageTeams) {
		return nil
	}
	for _, perm := range perms {
		if t.role == nil || !t.role.May(perm) {
			return errPermission
		}
	}
	return nil
}

// requireRolePermissions is requireTeamPermissions for the permissions of a role,
// nil for none.
func (t teamAccess) requireRolePermissions(role *company.TeamRole) error {
	if role == nil {
		return nil
	}
	return t.requireTeamPermissions(role.Permissions)
}

// authorizeRoleChange decides whether the caller may replace the role before by
// the role after, either as a member's role or as a role's definition; before is
// nil if there was none. Every action that changes or assigns a role of a team
// uses it: callers cannot grant more than their own role has, in permissions or in
// limits, not even to themselves. Narrowing a role is always allowed. Callers who
// manage all teams may set any limits.
func (t teamAccess) authorizeRoleChange(before *company.TeamRole, after company.TeamRole) error {
	if err := t.requireRolePermissions(before); err != nil {
		return err
	}
	if err := t.requireTeamPermissions(after.Permissions); err != nil {
		return err
	}
	if t.Role.May(company.ManageTeams) || t.role != nil && t.role.CoversRole(after) || before != nil && before.CoversRole(after) {
		return nil
	}
	return errLimits
}

// authorizeNamedRole is authorizeRoleChange for a role of the team by its name. A
// role that does not exist is refused later, when it is assigned.
func (t teamAccess) authorizeNamedRole(ctx context.Context, tx *sqldb.Tx, before *company.TeamRole, name string) error {
	after, err := t.findTeamRole(ctx, tx, name)
	if err != nil {
		return err
	}
	if after == nil {
		return t.requireRolePermissions(before)
	}
	return t.authorizeRoleChange(before, *after)
}

// findTeamRole finds a role of the team by its name, nil if there is none.
func (t teamAccess) findTeamRole(ctx context.Context, tx *sqldb.Tx, name string) (*company.TeamRole, error) {
	r, err := company.TeamRoleByName(ctx, tx, t.team.ID, name)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// findMemberRole finds a person's role in the team, nil if they are not a member.
func (t teamAccess) findMemberRole(ctx context.Context, tx *sqldb.Tx, personID string) (*company.TeamRole, error) {
	account, err := FindTeamAccount(ctx, tx, personID, t.team.ID)
	if err != nil || account == nil {
		return nil, err
	}
	return &account.Role, nil
}

// authorizeTeamEntry refuses an invitation or a mail domain that leads into a
// team if the caller could not add members with that role directly. A team or
// role that does not exist in the company is refused later, when it is stored.
func (c companyAccess) authorizeTeamEntry(ctx context.Context, tx *sqldb.Tx, teamID, role string) error {
	if teamID == "" {
		return nil
	}
	team, err := company.TeamByID(ctx, tx, teamID)
	if fault.Is(err, fault.NotFound) || err == nil && team.CompanyID != c.Company.ID {
		return nil
	}
	if err != nil {
		return err
	}

	t, err := authorizeTeam(ctx, tx, c.caller, teamID, requireManageTeam)
	if err != nil {
		return err
	}
	return t.authorizeNamedRole(ctx, tx, nil, role)
}
