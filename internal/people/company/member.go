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

// Member is a member of a company, with the name of their company role.
type Member struct {
	PersonID string
	Email    string
	Role     string
	Joined   time.Time
}

// ListKey returns the member's position in a list that is sorted by mail
// address.
func (m Member) ListKey() Key { return Key{emailKey(m.Email), m.PersonID} }

// SetMember adds an existing person to the company or assigns them another role
// in it. It reports whether the person is a new member.
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

// RemoveMember removes a person from the company and its teams, and returns the
// ids of these teams. It does not revoke invitations: the person can rejoin
// with a live invitation.
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
	found, err := deleteMember(ctx, tx, companyID, personID)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errNoMember
	}
	return teams, nil
}

// LockMember ensures that a member is not removed from the company before tx
// ends. It returns an error if the person is not a member. Callers use it
// before they store a row that only members may have.
func LockMember(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	if err := Lock(ctx, tx, companyID); err != nil {
		return err
	}
	if !ids.Valid(personID) {
		return errNoMember
	}
	found, err := isMember(ctx, tx, companyID, personID)
	if err != nil {
		return err
	}
	if !found {
		return errNoMember
	}
	return nil
}

// HasAdmin reports whether the company has a member who can manage its members.
// A caller who changes a member or a role calls HasAdmin in the same
// transaction, and rolls back if the result is false.
func HasAdmin(ctx context.Context, tx *sqldb.Tx, companyID string) (bool, error) {
	held, err := rolesHeld(ctx, tx, companyID)
	return slices.ContainsFunc(held, func(r Role) bool { return r.May(ManageMembers) }), err
}

// How is the way in which a person joined a team.
type How string

// The ways of joining a team: added by an admin, with an invitation, or through
// a mail domain.
const (
	Added    How = "added"
	Invited  How = "invitation"
	ByDomain How = "domain"
)

// TeamMember is a member of a team. Role and Joined refer to the team, not to
// the company.
type TeamMember struct {
	Member
	How How
}

// SetTeamMember adds an existing person to the team, or assigns them another
// role in it. A person who is not a member of the company joins it with the
// role "member". SetTeamMember reports whether the person is new to the team.
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

// RemoveTeamMember removes a person from a team. They stay a member of the
// company.
func RemoveTeamMember(ctx context.Context, tx *sqldb.Tx, teamID, personID string) error {
	if _, err := lockTeam(ctx, tx, teamID); err != nil {
		return err
	}
	if !ids.Valid(personID) {
		return errNoMember
	}
	found, err := deleteTeamMember(ctx, tx, teamID, personID)
	if err != nil {
		return err
	}
	if !found {
		return errNoMember
	}
	return nil
}

var errNoMember = fault.New(fault.NotFound, "There is no such member.")

// needRole returns an error if the company has no role with the given name; the
// error names the request field given by field. The caller has locked the
// company, so the role cannot be deleted before the transaction ends.
func needRole(ctx context.Context, tx *sqldb.Tx, companyID, name, field string) error {
	if !validRole(name) {
		return fault.New(fault.Invalid, "This is not the name of a role.").On(field)
	}
	found, err := hasRole(ctx, tx, companyID, name)
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.Invalid, fmt.Sprintf("The company has no role %s.", name)).On(field)
	}
	return nil
}

// needTeamRole is needRole for the roles of a team.
func needTeamRole(ctx context.Context, tx *sqldb.Tx, teamID, name, field string) error {
	if !validRole(name) {
		return fault.New(fault.Invalid, "This is not the name of a role.").On(field)
	}
	found, err := hasTeamRole(ctx, tx, teamID, name)
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.Invalid, fmt.Sprintf("The team has no role %s.", name)).On(field)
	}
	return nil
}

// Lock locks a company's row until tx ends. Every function that changes members
// or roles of the company takes the same lock.
func Lock(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	if !ids.Valid(companyID) {
		return errNoCompany
	}
	return lockCompany(ctx, tx, companyID)
}

// lockTeam locks the company of a team and returns the team. It returns an
// error if the team has been removed.
func lockTeam(ctx context.Context, tx *sqldb.Tx, teamID string) (Team, error) {
	if !ids.Valid(teamID) {
		return Team{}, errNoTeam
	}
	if err := lockCompanyOf(ctx, tx, teamID); err != nil {
		return Team{}, err
	}
	return teamByID(ctx, tx, teamID)
}

// emailKey returns the lower-case form in which e-mail addresses are compared.
// Local parts are case-sensitive according to RFC 5321 section 2.4, but not in
// practice.
func emailKey(email string) string { return strings.ToLower(email) }
