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

// StandingOf reads what a person is in a team. It is asked at every request
// that names a team, and so is one statement. In a transaction the membership,
// the team and the role are locked.
func StandingOf(ctx context.Context, q sqldb.Querier, personID, teamID string) (Account, error) {
	if !ids.Valid(teamID) {
		return Account{}, ErrNotMember
	}
	a, err := standing(ctx, q, personID, teamID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Account{}, ErrNotMember
	}
	return a, err
}

// CompanyStanding reads what a person is in a company, in one statement. In a
// transaction the membership and the role are locked.
func CompanyStanding(ctx context.Context, q sqldb.Querier, personID, companyID string) (Role, Company, error) {
	if !ids.Valid(companyID) {
		return Role{}, Company{}, errNoCompany
	}
	m, err := companyStanding(ctx, q, personID, companyID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Role{}, Company{}, errNoCompany
	}
	return m.Role, m.Company, err
}

// Account is a team that somebody works in.
type Account struct {
	Team   Team
	Plan   Plan
	Role   TeamRole
	Joined time.Time
	How    How
}

// Accounts gives the teams somebody is in, by the names of company and team.
func Accounts(ctx context.Context, tx *sqldb.Tx, personID string) ([]Account, error) {
	return accounts(ctx, tx, personID)
}

// JoinedSince gives the teams that a person came into after since by
// invitation or domain, in that order: not those where somebody added them.
func JoinedSince(ctx context.Context, tx *sqldb.Tx, personID string, since time.Time) ([]Team, error) {
	return joinedSince(ctx, tx, personID, since)
}
