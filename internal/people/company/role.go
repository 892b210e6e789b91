package company

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Permission is an action that a role allows.
type Permission string

// The permissions that a company role can include.
const (
	ManageAPITokens    Permission = "MANAGE_API_TOKENS"
	ViewCompanyReports Permission = "VIEW_COMPANY_REPORTS"
	ManageMembers      Permission = "MANAGE_MEMBERS"
	ManageTeams        Permission = "MANAGE_TEAMS"
	ManageBilling      Permission = "MANAGE_BILLING"
)

// The permissions that a team role can include.
const (
	UsePlugins Permission = "USE_PLUGINS"
	Generate   Permission = "GENERATE"
	ManageTeam Permission = "MANAGE_TEAM"
)

// All permissions that company roles and team roles can include, in the order
// in which they are displayed.
var (
	CompanyPermissions = []Permission{ManageAPITokens, ViewCompanyReports, ManageMembers, ManageTeams, ManageBilling}
	TeamPermissions    = []Permission{UsePlugins, Generate, ManageTeam}
)

// The roles that new companies and teams have. The company roles "admin" and
// "member" and the team role "member" cannot be deleted. New members get the
// role "member" by default.
const (
	RoleAdmin   = "admin"   // a company role
	RoleManager = "manager" // a team role
	RoleMember  = "member"  // both a company role and a team role
)

// Role is a role of a company: a named set of permissions.
type Role struct {
	Name        string
	Permissions []Permission // sorted
}

// May reports whether the role includes the permission.
func (r Role) May(p Permission) bool { return slices.Contains(r.Permissions, p) }

// SetRole creates a role of a company or replaces its permissions. The role
// "admin" must have all permissions.
func SetRole(ctx context.Context, tx *sqldb.Tx, companyID string, r Role) error {
	problems := checkRole(r.Name, r.Permissions, CompanyPermissions)
	if len(problems.Fields) > 0 {
		return problems
	}
	r.Permissions = sortUnique(r.Permissions)
	if r.Name == RoleAdmin && len(r.Permissions) < len(CompanyPermissions) {
		return fault.New(fault.Invalid, "The role admin always has all permissions. They can't be removed.").On("permissions")
	}
	if err := Lock(ctx, tx, companyID); err != nil {
		return err
	}
	all, err := Roles(ctx, tx, companyID)
	if err != nil {
		return err
	}
	if len(all) >= maxRoles && !slices.ContainsFunc(all, func(o Role) bool { return o.Name == r.Name }) {
		return errManyRoles
	}
	return putRole(ctx, tx, companyID, r)
}

// DeleteRole deletes a role of a company. It refuses to delete a role that is
// assigned to a member or a live invitation.
func DeleteRole(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	if name == RoleAdmin || name == RoleMember {
		return fault.New(fault.Invalid, "The roles admin and member can't be deleted.").On("name")
	}
	if err := Lock(ctx, tx, companyID); err != nil {
		return err
	}
	if !validRole(name) {
		return errNoRole
	}
	found, err := hasRole(ctx, tx, companyID, name)
	if err != nil {
		return err
	}
	if !found {
		return errNoRole
	}
	deleted, err := deleteRole(ctx, tx, companyID, name)
	if err != nil {
		return err
	}
	if !deleted {
		return errRoleInUse
	}
	return nil
}

// EnsureRole returns the name of a company role with exactly these permissions,
// and creates one if there is none. It prefers the roles "member" (no
// permissions) and "admin" (all permissions). A new role is named after its
// permissions.
func EnsureRole(ctx context.Context, tx *sqldb.Tx, companyID string, perms []Permission) (string, error) {
	if problems := checkRole(RoleMember, perms, CompanyPermissions); len(problems.Fields) > 0 {
		return "", problems
	}
	want := sortUnique(perms)
	var name string
	switch len(want) {
	case 0:
		name = RoleMember
	case len(CompanyPermissions):
		name = RoleAdmin
	default:
		for _, p := range want {
			name += "+" + strings.ToLower(string(p))
		}
		name = name[1:]
	}
	if err := Lock(ctx, tx, companyID); err != nil {
		return "", err
	}
	all, err := Roles(ctx, tx, companyID)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	same := ""
	for _, r := range all {
		taken[r.Name] = true
		if slices.Equal(r.Permissions, want) && (same == "" || r.Name == name) {
			same = r.Name
		}
	}
	if same != "" {
		return same, nil
	}
	// The name can already be in use: an admin may have changed the permissions
	// of the role that has it.
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free, SetRole(ctx, tx, companyID, Role{free, want})
}

// TeamRole is a role of a team: permissions, allowed tools and plugins, and a
// spending limit.
type TeamRole struct {
	Name         string
	Permissions  []Permission // sorted
	ToolsAllowed []string     // ids of the allowed tools; empty if all tools are allowed
	ToolsBlocked []string     // ids of the blocked tools
	PluginKinds  []string     // "*" alone allows all kinds
	Spend        *Spend       // nil if there is no limit
}

// Spend limits the tokens that a member can spend within any period of length
// Window.
type Spend struct {
	Tokens int64
	Window time.Duration // a whole number of seconds
}

// May reports whether the role includes the permission.
func (r TeamRole) May(p Permission) bool { return slices.Contains(r.Permissions, p) }

// AllowsApp reports whether members with the role can act for the team through
// an app that reports the given kind of plugin.
func (r TeamRole) AllowsApp(kind string) bool { return r.May(UsePlugins) && r.AllowsPlugin(kind) }

// AllowsPlugin reports whether the role allows plugins of the given kind. A
// plugin that reports no kind ("") is allowed only if all kinds are.
func (r TeamRole) AllowsPlugin(kind string) bool {
	return slices.Contains(r.PluginKinds, AnyKind) || kind != "" && slices.Contains(r.PluginKinds, kind)
}

// AnyKind is the value in PluginKinds that allows plugins of all kinds.
const AnyKind = "*"

// TeamRoleByName returns the named role of a team.
func TeamRoleByName(ctx context.Context, tx *sqldb.Tx, teamID, name string) (TeamRole, error) {
	if !ids.Valid(teamID) || !validRole(name) {
		return TeamRole{}, errNoRole
	}
	return teamRole(ctx, tx, teamID, name)
}

// SetTeamRole creates a role of a team, or replaces all values of an existing
// role.
func SetTeamRole(ctx context.Context, tx *sqldb.Tx, teamID string, r TeamRole) error {
	if err := r.validate(); err != nil {
		return err
	}
	r.Permissions = sortUnique(r.Permissions)
	r.PluginKinds = sortUnique(r.PluginKinds)
	r.ToolsAllowed = sortUnique(r.ToolsAllowed)
	r.ToolsBlocked = sortUnique(r.ToolsBlocked)
	if _, err := lockTeam(ctx, tx, teamID); err != nil {
		return err
	}
	all, err := TeamRoles(ctx, tx, teamID)
	if err != nil {
		return err
	}
	if len(all) >= maxRoles && !slices.ContainsFunc(all, func(o TeamRole) bool { return o.Name == r.Name }) {
		return errManyRoles
	}
	return putTeamRole(ctx, tx, teamID, r)
}

// DeleteTeamRole deletes a role of a team. It refuses to delete a role that is
// assigned to a member, a live invitation or a mail domain.
func DeleteTeamRole(ctx context.Context, tx *sqldb.Tx, teamID, name string) error {
	if name == RoleMember {
		return fault.New(fault.Invalid, "The role member can't be deleted.").On("name")
	}
	if _, err := lockTeam(ctx, tx, teamID); err != nil {
		return err
	}
	if !validRole(name) {
		return errNoRole
	}
	found, err := hasTeamRole(ctx, tx, teamID, name)
	if err != nil {
		return err
	}
	if !found {
		return errNoRole
	}
	deleted, err := deleteTeamRole(ctx, tx, teamID, name)
	if err != nil {
		return err
	}
	if !deleted {
		return errRoleInUse
	}
	return nil
}

var (
	errNoRole    = fault.New(fault.NotFound, "There is no such role.")
	errRoleInUse = fault.New(fault.Invalid, "Members, open invitations or domains have this role. Give them another role first.").On("name")
	errManyRoles = fault.New(fault.Invalid, fmt.Sprintf("There can be at most %d roles.", maxRoles)).On("name")
)

// Limits on roles. maxRoleName is large enough for the names that EnsureRole
// creates.
const (
	maxRoles     = 100 // maximum number of roles per company or team
	maxRoleName  = 120
	maxKinds     = 100
	maxKind      = 32
	maxTools     = 1000
	maxSpend     = int64(1e15)
	maxSpendTime = 366 * 24 * time.Hour
)

func (r TeamRole) validate() error {
	problems := checkRole(r.Name, r.Permissions, TeamPermissions)
	kind := func(k string) bool { return len(k) <= maxKind && hasOnlyChars(k, "_-") }
	if !slices.Equal(r.PluginKinds, []string{AnyKind}) && (len(r.PluginKinds) > maxKinds || !allMatch(r.PluginKinds, kind)) {
		problems = problems.Field("plugin_kinds", `Must be "*" alone, or at most 100 names of 1 to 32 lower-case letters, digits, "_" and "-".`)
	}
	for i, tools := range [][]string{r.ToolsAllowed, r.ToolsBlocked} {
		if len(tools) > maxTools || !allMatch(tools, ids.Valid) {
			problems = problems.Field([]string{"tools_allowed", "tools_blocked"}[i], "Must be a list of at most 1000 tool ids.")
		}
	}
	if s := r.Spend; s != nil && (s.Tokens < 0 || s.Tokens > maxSpend || s.Window < time.Second || s.Window > maxSpendTime || s.Window%time.Second != 0) {
		problems = problems.Field("spend", "Must be a number of tokens, 0 or more, and a window of whole seconds of at most 366 days.")
	}
	if len(problems.Fields) > 0 {
		return problems
	}
	return nil
}

// checkRole validates the parts that company roles and team roles have in
// common. The result has no fields if everything is valid.
func checkRole(name string, perms, known []Permission) *fault.Error {
	problems := fault.New(fault.Invalid, "The role is invalid.")
	if !validRole(name) {
		problems = problems.Field("name", `The name of a role must have 1 to 120 lower-case letters, digits, "_", "+" and "-", and begin with a letter or digit.`)
	}
	for _, p := range perms {
		if !slices.Contains(known, p) {
			names := make([]string, len(known))
			for i, k := range known {
				names[i] = string(k)
			}
			return problems.Field("permissions", "Must contain only these permissions: "+strings.Join(names, ", ")+".")
		}
	}
	return problems
}

func validRole(name string) bool {
	return len(name) <= maxRoleName && hasOnlyChars(name, "_+-") && !strings.ContainsAny(name[:1], "_+-")
}

// hasOnlyChars reports whether s is not empty and consists of lower-case
// letters, digits and the characters of extra.
func hasOnlyChars(s, extra string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return s != ""
}

func allMatch[T any](all []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(all, func(one T) bool { return !ok(one) })
}

// sortUnique returns the list sorted and without duplicates, which is the
// stored form.
func sortUnique[T ~string](list []T) []T { return slices.Compact(slices.Sorted(slices.Values(list))) }
