package company

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// ErrNotMember is the same error for teams of other people, removed teams and
// unknown teams.
var ErrNotMember = fault.New(fault.Forbidden, "You are not a member of this team.").With("reason", "not_a_member")

// TeamMembershipOf reads a person's membership in a team. Every request that
// names a team needs it, so it is a single statement. In a transaction the
// membership, the team and the role are locked.
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

// CompanyMembershipOf reads a person's role in a company, in one statement. In
// a transaction the membership and the role are locked.
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

// TeamMembership is a person's membership in a team.
type TeamMembership struct {
	Team   Team
	Plan   Plan
	Role   TeamRole
	Joined time.Time
	How    How
}
