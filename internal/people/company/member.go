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

// Member is somebody in a company.
type Member struct {
	PersonID string
	Email    string
	Role     string
	Joined   time.Time
}

// ListKey is where the member stands in a list.
func (m Member) ListKey() Key { return Key{emailKey(m.Email), m.PersonID} }

// SetMember takes a person, who must exist, into the company or gives them
// another role there.
func SetMember(ctx context.Context, tx *sqldb.Tx, companyID, personID, role string) (fresh bool, err error) {
	if err := Lock(ctx, tx, companyID); err != nil {
		return false, err
	}
	if err := needRole(ctx, tx, companyID, role, "role"); err != nil {
		return false, err
	}
	if fresh, err = addMember(ctx, tx, companyID, personID, role); err != nil || fresh {
		return fresh, err
	}
	return false, setMemberRole(ctx, tx, companyID, personID, role)
}

// RemoveMember takes a person out of the company and out of its teams, which
// it names. An invitation that is still open would let them in again.
func RemoveMember(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (teams []string, err error) {
	if err := Lock(ctx, tx, companyID); err != nil {
		return nil, err
	}
	if !ids.Valid(personID) {
		return nil, errNoMember
	}
	if teams, err = leaveTeams(ctx, tx, companyID, personID); err != nil {
		return nil, err
	}
	if found, err := deleteMember(ctx, tx, companyID, personID); err != nil || !found {
		return nil, firstError(err, errNoMember)
	}
	return teams, nil
}

// LockMember tells that a person is in the company and keeps them there until
// tx ends: for callers who are about to write down something that only members
// have.
func LockMember(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	if err := Lock(ctx, tx, companyID); err != nil {
		return err
	}
	if !ids.Valid(personID) {
		return errNoMember
	}
	if found, err := isMember(ctx, tx, companyID, personID); err != nil || !found {
		return firstError(err, errNoMember)
	}
	return nil
}

// HasAdmin reports whether somebody can manage the company's members. Callers
// who changed a member or a role ask it in the same transaction, and undo a
// change that left nobody.
func HasAdmin(ctx context.Context, tx *sqldb.Tx, companyID string) (bool, error) {
	held, err := rolesHeld(ctx, tx, companyID)
	return slices.ContainsFunc(held, func(r Role) bool { return r.May(ManageMembers) }), err
}

// How is the way somebody came into a team.
type How string

// The ways into a team.
const (
	Added    How = "added"
	Invited  How = "invitation"
	ByDomain How = "domain"
)

// TeamMember is somebody in a team.
type TeamMember struct {
	Member
	How How
}

// SetTeamMember takes a person, who must exist, into the team, or gives them
// another role there. Into the company they come as a plain member where they
// are not in it already.
func SetTeamMember(ctx context.Context, tx *sqldb.Tx, teamID, personID, role string, how How) (fresh bool, err error) {
	t, err := lockTeam(ctx, tx, teamID)
	if err != nil {
		return false, err
	}
	if err := needTeamRole(ctx, tx, t.ID, role, "role"); err != nil {
		return false, err
	}
	if _, err := addMember(ctx, tx, t.CompanyID, personID, RoleMember); err != nil {
		return false, err
	}
	if fresh, err = addTeamMember(ctx, tx, t.ID, personID, role, how); err != nil || fresh {
		return fresh, err
	}
	return false, setTeamMemberRole(ctx, tx, t.ID, personID, role)
}

// RemoveTeamMember takes a person out of a team. They stay in the company.
func RemoveTeamMember(ctx context.Context, tx *sqldb.Tx, teamID, personID string) error {
	if _, err := lockTeam(ctx, tx, teamID); err != nil {
		return err
	}
	if !ids.Valid(personID) {
		return errNoMember
	}
	if found, err := deleteTeamMember(ctx, tx, teamID, personID); err != nil || !found {
		return firstError(err, errNoMember)
	}
	return nil
}

var errNoMember = fault.New(fault.NotFound, "There is no such member.")

// needRole refuses the name of a role that the company does not have. The
// caller has the lock, so the role stays.
func needRole(ctx context.Context, tx *sqldb.Tx, companyID, name, field string) error {
	if !validRole(name) {
		return fault.New(fault.Invalid, "This is not the name of a role.").On(field)
	}
	if found, err := hasRole(ctx, tx, companyID, name); err != nil || !found {
		return firstError(err, fault.New(fault.Invalid, fmt.Sprintf("The company has no role %s.", name)).On(field))
	}
	return nil
}

// needTeamRole is needRole for teams.
func needTeamRole(ctx context.Context, tx *sqldb.Tx, teamID, name, field string) error {
	if !validRole(name) {
		return fault.New(fault.Invalid, "This is not the name of a role.").On(field)
	}
	if found, err := hasTeamRole(ctx, tx, teamID, name); err != nil || !found {
		return firstError(err, fault.New(fault.Invalid, fmt.Sprintf("The team has no role %s.", name)).On(field))
	}
	return nil
}

// Lock keeps everybody else from changing a company until tx ends.
func Lock(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	if !ids.Valid(companyID) {
		return errNoCompany
	}
	return lockCompany(ctx, tx, companyID)
}

// lockTeam locks the company of a team that is not removed.
func lockTeam(ctx context.Context, tx *sqldb.Tx, teamID string) (Team, error) {
	if !ids.Valid(teamID) {
		return Team{}, errNoTeam
	}
	if err := lockCompanyOf(ctx, tx, teamID); err != nil {
		return Team{}, err
	}
	return teamByID(ctx, tx, teamID)
}

// emailKey is how addresses are compared. Local parts are case-sensitive on
// paper (RFC 5321 section 2.4) and nowhere else.
func emailKey(email string) string { return strings.ToLower(email) }
