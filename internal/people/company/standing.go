package company

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// ErrNotMember is returned for unknown and removed teams, and for teams in
// which the caller is not a member.
var ErrNotMember = fault.New(fault.Forbidden, "You are not a member of this team.").With("reason", "not_a_member")

// TeamMembershipOf returns a person's membership in a team. It runs a single
// statement, because every request that names a team calls it. In a transaction
// it locks the rows of the membership, the team and the role.
func TeamMembershipOf(ctx context.Context, q sqldb.Querier, personID, teamID string) (TeamMembership, error) {
	if !ids.Valid(teamID) {
		return TeamMembership{}, ErrNotMember
	}
	a, err := teamMembership(ctx, q, personID, teamID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return TeamMembership{}, ErrNotMember
	}
	return a, err
}

// CompanyMembershipOf returns a company and a person's role in it. It runs a
// single statement. In a transaction it locks the rows of the membership and
// the role.
func CompanyMembershipOf(ctx context.Context, q sqldb.Querier, personID, companyID string) (Role, Company, error) {
	if !ids.Valid(companyID) {
		return Role{}, Company{}, errNoCompany
	}
	m, err := companyMembership(ctx, q, personID, companyID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Role{}, Company{}, errNoCompany
	}
	return m.Role, m.Company, err
}

// TeamMembership is a person's membership in a team, with their team role and
// the plan of the team's company.
type TeamMembership struct {
	Team   Team
	Plan   Plan
	Role   TeamRole
	Joined time.Time
	How    How
}
