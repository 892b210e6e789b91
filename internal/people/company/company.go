// Package company knows companies and their teams, who is in them, and what
// they may do there.
//
//	company ── roles ── members        what somebody may do with the company
//	   ├── team ── roles ── members    what somebody may do, use and spend in a team
//	   ├── invitations                 links that let people in
//	   └── domains                     mail domains whose people come in by themselves
//
// Whoever is in a team is in its company. Roles are read at every request and
// kept nowhere, so what was taken away is gone at the next one.
//
// Nothing here asks who is asking: that is for the callers. Functions that
// change who is in a company or what roles allow lock the company's row, so
// that within one company they happen one after another, and what the caller
// reads after its change (HasAdmin) holds until its transaction ends.
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

// Plan is what a company has bought.
type Plan string

// The plans of companies.
const (
	TeamPlan       Plan = "TEAM"
	EnterprisePlan Plan = "ENTERPRISE"
)

// Company is a customer with teams.
type Company struct {
	ID      string
	Name    string
	Plan    Plan
	Zone    string // by which clock it counts its days, by its IANA name
	Created time.Time
}

// Key is where a page of a list ended: at this text, and at this id among
// equal texts. The zero Key is the beginning.
type Key struct {
	Text string
	ID   string
}

// errNoCompany is one answer for companies of others and for those that never
// were.
var errNoCompany = fault.New(fault.NotFound, "There is no such company.")

// Create makes a company with the roles admin, who may do everything, and
// member, who may do nothing with the company itself.
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

// ByID returns a company.
func ByID(ctx context.Context, tx *sqldb.Tx, id string) (Company, error) {
	if !ids.Valid(id) {
		return Company{}, errNoCompany
	}
	return companyByID(ctx, tx, id)
}

// Rename returns a company another name.
func Rename(ctx context.Context, tx *sqldb.Tx, id, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := Lock(ctx, tx, id); err != nil {
		return err
	}
	return renameCompany(ctx, tx, id, name)
}

// SetPlan returns a company another plan. What only the old one allowed ends with
// the next call.
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
		return fault.New(fault.Invalid, "The plan of a company is TEAM or ENTERPRISE.").On("plan")
	}
	return nil
}

// Membership is a person's place in a company.
type Membership struct {
	Company Company
	Role    Role
	Joined  time.Time
}

// PermissionsOf returns what somebody may do with each of their companies, by
// the company's id.
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

// maxName bounds the names of companies and teams, in characters.
const maxName = 100

func checkName(name string) error {
	n := utf8.RuneCountInString(name)
	if n < 1 || n > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name {
		return fault.New(fault.Invalid, "A name has 1 to 100 characters, none of them a control character, and no space at its ends.").On("name")
	}
	return nil
}
