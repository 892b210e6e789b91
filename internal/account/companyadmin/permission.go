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

// The errors for refused actions. The error for a resource of another company
// is the same as for a resource that does not exist.
var (
	errNoCompany    = fault.New(fault.NotFound, "There is no such company.")
	errNoTeam       = fault.New(fault.NotFound, "There is no such team.")
	errNoMember     = fault.New(fault.NotFound, "There is no such member.")
	errNoInvitation = fault.New(fault.NotFound, "There is no such invitation.")

	errPermission = fault.New(fault.Forbidden, "Your role does not allow this.").With("reason", "permission")
	errLimits     = fault.New(fault.Forbidden, "These limits exceed those of your own role. A person who manages all teams of the company can set them.").With("reason", "limits")
	errPlugin     = fault.New(fault.PluginNotAllowed, "Your role in this team does not allow this app. Ask an admin of the team.")
)

// ErrLastAdmin is returned for a change after which no member of the company
// could manage its members.
var ErrLastAdmin = fault.New(fault.Forbidden, "The company must keep at least one member who can manage its members.").With("reason", "last_admin")

// companyAccess is the caller's membership in a company, as read in the current
// transaction. The operator has a role with all permissions.
type companyAccess struct {
	company.Membership
	caller principal.Principal
}

// companyRule is a permission check: it returns nil if the caller is allowed to
// perform an action in the company.
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

// authorizeCompany returns the caller's membership in a company if the rule
// allows the action. For callers who are not members it returns the same error
// as for a company that does not exist.
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

// FindMembership returns a person's membership in a company, or nil if they are
// not a member.
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

// requirePermissions refuses a caller who does not have all of these
// permissions. It prevents callers from granting permissions that they do not
// have, and from changing members and roles with such permissions.
func (c companyAccess) requirePermissions(perms []company.Permission) error {
	for _, p := range perms {
		if err := c.requirePermission(p); err != nil {
			return err
		}
	}
	return nil
}

// requireRole is requirePermissions for the permissions of the named company
// role.
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

// roleNameOf returns the name of a person's role in the company, or "" if they
// are not a member.
func (c companyAccess) roleNameOf(ctx context.Context, tx *sqldb.Tx, personID string) (string, error) {
	m, err := FindMembership(ctx, tx, personID, c.Company.ID)
	if err != nil || m == nil {
		return "", err
	}
	return m.Role.Name, nil
}

// requireMember refuses a person who is not a member of the company. People
// join only with their consent, by accepting an invitation or through their
// mail domain; only the operator can add a person without their consent.
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

// requireAdminLeft refuses a change, already made in tx, after which no member
// of the company can manage its members. For the operator it allows such a
// change.
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

// teamAccess is the caller's membership in a team and its company, as read in
// the current transaction.
type teamAccess struct {
	companyAccess
	team company.Team
	role *company.TeamRole // role in the team; nil if the caller is not a member of the team
}

// teamRule is a permission check: it returns nil if the caller is allowed to
// perform an action in the team.
type teamRule func(teamAccess) error

// allowCompanyMembers allows every member of the team's company.
func allowCompanyMembers(teamAccess) error { return nil }

// requireManageAllTeams refuses callers who cannot manage all teams of the
// company.
func requireManageAllTeams(t teamAccess) error { return requireManageTeams(t.companyAccess) }

// requireTeamMember refuses callers who neither are members of the team nor can
// manage all teams.
func requireTeamMember(t teamAccess) error {
	if t.Role.May(company.ManageTeams) {
		return nil
	}
	if t.role == nil {
		return errPermission
	}
	return t.requireAllowedApp()
}

// requireManageTeam refuses callers who can manage neither this team nor all
// teams.
func requireManageTeam(t teamAccess) error {
	if t.Role.May(company.ManageTeams) {
		return nil
	}
	if t.role == nil || !t.role.May(company.ManageTeam) {
		return errPermission
	}
	return t.requireAllowedApp()
}

// requireManageBilling refuses callers who cannot manage the company's billing.
func requireManageBilling(t teamAccess) error { return t.requirePermission(company.ManageBilling) }

// requireViewBudget refuses callers who can manage neither the company's
// billing nor this team.
func requireViewBudget(t teamAccess) error {
	if t.Role.May(company.ManageBilling) {
		return nil
	}
	if t.role == nil || !t.role.May(company.ManageTeam) {
		return errPermission
	}
	return t.requireAllowedApp()
}

// requireAllowedApp refuses a caller who uses an app that their role in the
// team does not allow.
func (t teamAccess) requireAllowedApp() error {
	if t.caller.UsesPlugin() && !t.role.AllowsApp(t.caller.Plugin) {
		return errPlugin
	}
	return nil
}

// authorizeTeam returns the caller's membership in a team if the rule allows
// the action. For callers who are not members of the team's company it returns
// the same error as for a team that does not exist.
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

// FindTeamAccount returns a person's membership in a team, or nil if they are
// not a member.
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

// requireTeamPermissions is requirePermissions for permissions in the team.
// Callers who can manage all teams have every team permission.
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

// requireRolePermissions is requireTeamPermissions for the permissions of a
// role. A nil role has no permissions.
func (t teamAccess) requireRolePermissions(role *company.TeamRole) error {
	if role == nil {
		return nil
	}
	return t.requireTeamPermissions(role.Permissions)
}

// authorizeRoleChange checks whether the caller may replace the team role
// before with the role after. The change assigns another role to a member or
// redefines a role; before is nil if there was no role. Every action that
// changes or assigns a team role calls authorizeRoleChange: callers cannot
// grant permissions or limits beyond those of their own role, not even to
// themselves. Narrowing a role's limits is always allowed. Callers who can
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

// authorizeNamedRole is authorizeRoleChange for the named team role. A role
// that does not exist is refused later, when it is assigned.
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

// findTeamRole returns the named role of the team, or nil if the team does not
// have it.
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

// findMemberRole returns a person's role in the team, or nil if they are not a
// member.
func (t teamAccess) findMemberRole(ctx context.Context, tx *sqldb.Tx, personID string) (*company.TeamRole, error) {
	account, err := FindTeamAccount(ctx, tx, personID, t.team.ID)
	if err != nil || account == nil {
		return nil, err
	}
	return &account.Role, nil
}

// authorizeTeamEntry refuses an invitation or a mail domain for a team if the
// caller is not allowed to add members with the given role directly. A team or
// role that does not exist in the company is refused later, when the invitation
// or domain is stored.
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
