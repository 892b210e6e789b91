package company

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// ErrNotMember is one answer for teams of others, for those that were removed
// and for those that never were.
var ErrNotMember = fault.New(fault.Forbidden, "You are not a member of this team.").With("reason", "not_a_member")

// TeamMembershipOf reads what a person is in a team. It is asked at every request
// that names a team, and so is one statement. In a transaction the membership,
// the team and the role are locked.
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

// CompanyMembershipOf reads what a person is in a company, in one statement. In a
// transaction the membership and the role are locked.
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

// TeamMembership is a team that somebody works in.
type TeamMembership struct {
	Team   Team
	Plan   Plan
	Role   TeamRole
	Joined time.Time
	How    How
}
