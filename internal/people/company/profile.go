package company

import (
	"context"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Profile is a person as the company's identity provider (SCIM) sees them.
// Every member has one, and every user whom the identity provider has
// deactivated and not deleted.
//
// A deactivated user is not a member. Their role and their places in teams
// (seats) are stored. Only the identity provider or the operator can activate
// them again; an invitation or a mail domain cannot.
type Profile struct {
	PersonID   string
	Email      string
	Active     bool // a member
	Kept       bool // the identity provider has sent attributes
	ExternalID string
	Attributes string // JSON, "" if there are none
	Created    time.Time
	Updated    time.Time
}

// Place is a person's membership in a team, or an inactive user's seat there.
type Place struct {
	TeamID, Team    string // Team is the name
	PersonID, Email string
	Active          bool // false: it is a seat
}

// Group is a team as the company's identity provider sees it.
type Group struct {
	Team
	ExternalID string
	Updated    time.Time
}

// errNoProfile is the same error for people of other companies and unknown
// people.
var errNoProfile = fault.New(fault.NotFound, "There is no such user.")

// ProfileOf returns a person's profile.
func ProfileOf(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (Profile, error) {
	if !ids.Valid(personID) {
		return Profile{}, errNoProfile
	}
	return profileOf(ctx, tx, companyID, personID)
}

// DropProfile deletes the attributes that the identity provider has sent about
// a person, and their seats.
func DropProfile(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	if err := dropSeats(ctx, tx, companyID, personID); err != nil {
		return err
	}
	return deleteProfile(ctx, tx, companyID, personID)
}

// Deactivate removes a person with stored attributes from the company and its
// teams, and stores their roles. It returns the ids of the teams.
func Deactivate(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (teams []string, err error) {
	if err := Lock(ctx, tx, companyID); err != nil {
		return nil, err
	}
	if err := storeMembership(ctx, tx, companyID, personID); err != nil {
		return nil, err
	}
	return RemoveMember(ctx, tx, companyID, personID)
}

// Activate adds a person with stored attributes to the company, with the roles
// that they had before they were deactivated. It returns their role and their
// teams. A role that no longer exists is replaced by the role member.
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
	if _, err := addMember(ctx, tx, companyID, personID, role); err != nil { // this deletes the seats
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

// seat is an inactive user's place in a team, with the role that they return
// to.
type seat struct{ teamID, role string }

// KeepSeat reserves a seat in a team for an inactive person with stored
// attributes, for their next activation. It reports whether they had none
// before.
func KeepSeat(ctx context.Context, tx *sqldb.Tx, t Team, personID string) (fresh bool, err error) {
	// An admin may have removed the member, which leaves the profile active.
	// From this update on, the row is locked and the profile cannot be deleted.
	if kept, err := switchOff(ctx, tx, t.CompanyID, personID); err != nil || !kept {
		return false, firstError(err, errNoProfile)
	}
	return insertSeat(ctx, tx, t.ID, personID, RoleMember)
}

// isDeactivated reports whether the company's identity provider has deactivated
// a person.
func isDeactivated(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (bool, error) {
	return isOff(ctx, tx, companyID, personID)
}

var errBarred = fault.New(fault.Forbidden, "Your company's directory has switched your account off. Ask its admins.").With("reason", "directory")

// errNoGroup is the same error for teams of other companies and unknown teams.
var errNoGroup = fault.New(fault.NotFound, "There is no such group.")

// GroupByID returns a group of the company.
func GroupByID(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) (Group, error) {
	if !ids.Valid(teamID) {
		return Group{}, errNoGroup
	}
	return groupByID(ctx, tx, companyID, teamID)
}

// PlacesIn returns at most limit places in the given teams of a company, or in
// all its teams for nil, ordered by team and mail address.
func PlacesIn(ctx context.Context, tx *sqldb.Tx, companyID string, teamIDs []string, limit int) ([]Place, error) {
	if teamIDs != nil && len(teamIDs) == 0 {
		return nil, nil
	}
	return groupPlaces(ctx, tx, companyID, "t.id", teamIDs, limit)
}

// PlacesOf returns the places of the given people in a company's teams.
func PlacesOf(ctx context.Context, tx *sqldb.Tx, companyID string, personIDs []string) ([]Place, error) {
	if len(personIDs) == 0 {
		return nil, nil
	}
	return groupPlaces(ctx, tx, companyID, "p.id", personIDs, -1)
}

// OwnsDomain reports whether the company has verified the domain of a mail
// address.
func OwnsDomain(ctx context.Context, tx *sqldb.Tx, companyID, email string) (bool, error) {
	all, err := Domains(ctx, tx, companyID)
	return slices.ContainsFunc(all, func(d Domain) bool { return d.Verified != nil && d.Name == domainOf(email) }), err
}
