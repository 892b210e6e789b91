// Package company stores companies and their teams, with the members, roles and
// permissions of both.
//
//	company ── roles ── members        permissions in the company
//	   ├── team ── roles ── members    permissions and limits in a team
//	   ├── invitations                 links by which people join
//	   └── domains                     mail domains whose people join automatically
//
// Every member of a team is a member of its company. Roles are read at every
// request and never cached, so a revoked permission is refused from the next
// request.
//
// This package does not check the caller's permissions; callers do. Functions
// that change members or roles lock the company's row, so within one company
// they run one after the other. The result of HasAdmin, called after such a
// change, is valid until the transaction ends.
package company

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Plan is the plan that a company pays for. It determines the features that its
// members can use.
type Plan string

// The plans that a company can have.
const (
	TeamPlan       Plan = "TEAM"
	EnterprisePlan Plan = "ENTERPRISE"
)

// Company is a customer organization, which consists of teams.
type Company struct {
	ID      string
	Name    string
	Plan    Plan
	Zone    string // time zone of the company's daily reports, as an IANA name
	Created time.Time
}

// Key is the position after which a page of a sorted list begins: the sort text
// of the last entry before the page, and its id, because several entries can
// have the same text. The zero Key is the beginning of the list.
type Key struct {
	Text string
	ID   string
}

// errNoCompany is returned both for unknown companies and for companies in
// which the caller is not a member.
var errNoCompany = fault.New(fault.NotFound, "There is no such company.")

// Create creates a company with two roles: "admin", which has all permissions,
// and "member", which has no company permissions.
func Create(ctx context.Context, tx *sqldb.Tx, name string, plan Plan) (Company, error) {
	if err := checkName(name); err != nil {
		return Company{}, err
	}
	if err := checkPlan(plan); err != nil {
		return Company{}, err
	}
	c := Company{
		ID:      ids.New(),
		Name:    name,
		Plan:    plan,
		Zone:    firstZone,
		Created: tx.Now,
	}
	if err := insertCompany(ctx, tx, c); err != nil {
		return Company{}, err
	}
	for _, r := range []Role{{RoleAdmin, sortUnique(CompanyPermissions)}, {RoleMember, nil}} {
		if err := putRole(ctx, tx, c.ID, r); err != nil {
			return Company{}, err
		}
	}
	return c, nil
}

// ByID returns the company with the given id, or errNoCompany.
func ByID(ctx context.Context, tx *sqldb.Tx, id string) (Company, error) {
	if !ids.Valid(id) {
		return Company{}, errNoCompany
	}
	return companyByID(ctx, tx, id)
}

// Rename changes a company's name.
func Rename(ctx context.Context, tx *sqldb.Tx, id, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := Lock(ctx, tx, id); err != nil {
		return err
	}
	return renameCompany(ctx, tx, id, name)
}

// SetPlan changes a company's plan. Features that only the old plan includes
// are refused from the next request.
func SetPlan(ctx context.Context, tx *sqldb.Tx, id string, plan Plan) error {
	if err := checkPlan(plan); err != nil {
		return err
	}
	if err := Lock(ctx, tx, id); err != nil {
		return err
	}
	return setPlan(ctx, tx, id, plan)
}

func checkPlan(plan Plan) error {
	if plan != TeamPlan && plan != EnterprisePlan {
		return fault.New(fault.Invalid, "The plan of a company must be TEAM or ENTERPRISE.").On("plan")
	}
	return nil
}

// Membership is a person's membership in a company, with their company role.
type Membership struct {
	Company Company
	Role    Role
	Joined  time.Time
}

// PermissionsOf returns a person's permissions in each of their companies,
// keyed by company id.
func PermissionsOf(ctx context.Context, tx *sqldb.Tx, personID string) (map[string][]Permission, error) {
	all, err := CompanyMemberships(ctx, tx, personID)
	if err != nil {
		return nil, err
	}
	of := map[string][]Permission{}
	for _, m := range all {
		of[m.Company.ID] = m.Role.Permissions
	}
	return of, nil
}

// maxName is the maximum length of the name of a company or team, in
// characters.
const maxName = 100

func checkName(name string) error {
	n := utf8.RuneCountInString(name)
	if n < 1 || n > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name {
		return fault.New(fault.Invalid, "A name must have 1 to 100 characters, without control characters and without spaces at its start and end.").On("name")
	}
	return nil
}
