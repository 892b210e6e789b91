package company

import (
	"context"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Profile is a person as the company's identity provider sees them over SCIM.
// Every member of the company has a profile, and so does every user whom the
// identity provider has deactivated but not deleted.
//
// A deactivated user is not a member. Their company role and their team
// memberships (as SCIM seats) are stored for a later activation. Only the
// identity provider or the operator can activate them again; invitations and
// mail domains cannot.
type Profile struct {
	PersonID   string
	Email      string
	Active     bool // the person is a member of the company
	Kept       bool // the identity provider has sent attributes, which are stored
	ExternalID string
	Attributes string // JSON, "" if there are none
	Created    time.Time
	Updated    time.Time
}

// TeamSeat is a person's membership in a team, or a SCIM seat: the team membership
// of a deactivated user, stored for a later activation.
type TeamSeat struct {
	TeamID, Team    string // id and name of the team
	PersonID, Email string
	Active          bool // false for the SCIM seat of a deactivated user
}

// Group is a team as the company's identity provider sees it over SCIM.
type Group struct {
	Team
	ExternalID string
	Updated    time.Time
}

// errNoProfile is returned both for unknown people and for people of other
// companies.
var errNoProfile = fault.New(fault.NotFound, "There is no such user.")

// ProfileOf returns a person's profile in a company.
func ProfileOf(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (Profile, error) {
	if !ids.Valid(personID) {
		return Profile{}, errNoProfile
	}
	return profileOf(ctx, tx, companyID, personID)
}

// DropProfile deletes the attributes that the company's identity provider has
// sent about a person, and their SCIM seats in the company's teams.
func DropProfile(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	if err := dropSeats(ctx, tx, companyID, personID); err != nil {
		return err
	}
	return deleteProfile(ctx, tx, companyID, personID)
}

// Deactivate removes a person, whose attributes must be stored, from the
// company and its teams, and stores their roles for Activate. It returns the
// ids of the teams.
func Deactivate(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (teams []string, err error) {
	if err := Lock(ctx, tx, companyID); err != nil {
		return nil, err
	}
	if err := storeMembership(ctx, tx, companyID, personID); err != nil {
		return nil, err
	}
	return RemoveMember(ctx, tx, companyID, personID)
}

// Activate adds a person, whose attributes must be stored, to the company and
// its teams, with the roles that they had before they were deactivated. It
// returns their company role and the ids of their teams. A role that no longer
// exists is replaced with the role "member".
func Activate(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (role string, teams []string, err error) {
	if err := Lock(ctx, tx, companyID); err != nil {
		return "", nil, err
	}
	if role, err = rememberedRole(ctx, tx, companyID, personID); err != nil {
		return "", nil, err
	}
	seats, err := seatsOf(ctx, tx, companyID, personID)
	if err != nil {
		return "", nil, err
	}
	if _, err := addMember(ctx, tx, companyID, personID, role); err != nil { // addMember deletes the SCIM seats, so they were read before
		return "", nil, err
	}
	for _, s := range seats {
		if _, err := addTeamMember(ctx, tx, s.teamID, personID, s.role, Added); err != nil {
			return "", nil, err
		}
		teams = append(teams, s.teamID)
	}
	return role, teams, nil
}

// seat is a deactivated user's stored membership in a team, with the role that
// they will have when they are activated.
type seat struct{ teamID, role string }

// KeepSeat stores a SCIM seat in a team for a deactivated person, whose
// attributes must be stored. The person joins the team when they are activated.
// KeepSeat reports whether they had no seat in the team before.
func KeepSeat(ctx context.Context, tx *sqldb.Tx, t Team, personID string) (fresh bool, err error) {
	// An admin may have removed the person from the company, which leaves the
	// profile marked as active. The update marks it as inactive and locks its
	// row, so the profile cannot be deleted before the transaction ends.
	kept, err := switchOff(ctx, tx, t.CompanyID, personID)
	if err != nil {
		return false, err
	}
	if !kept {
		return false, errNoProfile
	}
	return insertSeat(ctx, tx, t.ID, personID, RoleMember)
}

// isDeactivated reports whether the company's identity provider has deactivated
// a person.
func isDeactivated(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (bool, error) {
	return isOff(ctx, tx, companyID, personID)
}

var errBarred = fault.New(fault.Forbidden, "Your company's identity provider has deactivated your account. Contact an admin of your company.").With("reason", "directory")

// errNoGroup is returned both for unknown teams and for teams of other
// companies.
var errNoGroup = fault.New(fault.NotFound, "There is no such group.")

// GroupByID returns a team of the company as a group.
func GroupByID(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) (Group, error) {
	if !ids.Valid(teamID) {
		return Group{}, errNoGroup
	}
	return groupByID(ctx, tx, companyID, teamID)
}

// PlacesIn returns the memberships and SCIM seats in the given teams of a
// company, or in all its teams if teamIDs is nil. It returns at most limit of
// them, ordered by team name and e-mail address.
func PlacesIn(ctx context.Context, tx *sqldb.Tx, companyID string, teamIDs []string, limit int) ([]TeamSeat, error) {
	if teamIDs != nil && len(teamIDs) == 0 {
		return nil, nil
	}
	return groupSeats(ctx, tx, companyID, "t.id", teamIDs, limit)
}

// PlacesOf returns the memberships and SCIM seats of the given people in a
// company's teams, ordered by team name and e-mail address.
func PlacesOf(ctx context.Context, tx *sqldb.Tx, companyID string, personIDs []string) ([]TeamSeat, error) {
	if len(personIDs) == 0 {
		return nil, nil
	}
	return groupSeats(ctx, tx, companyID, "p.id", personIDs, -1)
}

// OwnsDomain reports whether the domain of an e-mail address is a verified domain
// of the company.
func OwnsDomain(ctx context.Context, tx *sqldb.Tx, companyID, email string) (bool, error) {
	all, err := Domains(ctx, tx, companyID)
	return slices.ContainsFunc(all, func(d Domain) bool { return d.Verified != nil && d.Name == domainOf(email) }), err
}
