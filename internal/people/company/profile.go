package company

import (
	"context"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Profile is somebody as the company's own directory sees them: every member,
// and everybody whom the directory has switched off and not deleted.
//
// Who is switched off is no member. Their role and their places in teams are
// remembered (seats), and nothing but the directory or the operator brings them
// back: no invitation, and no domain.
type Profile struct {
	PersonID   string
	Email      string
	Active     bool // a member
	Kept       bool // the directory has said something about them
	ExternalID string
	Attributes string // JSON, "" where nothing is kept
	Created    time.Time
	Updated    time.Time
}

// Place is somebody's place in a team, or a seat that is kept for them there.
type Place struct {
	TeamID, Team    string // its name
	PersonID, Email string
	Active          bool // false: a seat
}

// Group is a team as the company's own directory sees it.
type Group struct {
	Team
	ExternalID string
	Updated    time.Time
}

// errNoProfile is one answer for people of others and for those that never were.
var errNoProfile = fault.New(fault.NotFound, "There is no such user.")

// ProfileOf returns a person's profile.
func ProfileOf(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (Profile, error) {
	if !ids.Valid(personID) {
		return Profile{}, errNoProfile
	}
	return profileOf(ctx, tx, companyID, personID)
}

// DropProfile forgets what the directory said about somebody, and their seats.
func DropProfile(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	if err := dropSeats(ctx, tx, companyID, personID); err != nil {
		return err
	}
	return deleteProfile(ctx, tx, companyID, personID)
}

// Deactivate takes somebody whose profile is kept out of the company and its
// teams, which it names, and remembers their roles.
func Deactivate(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (teams []string, err error) {
	if err := Lock(ctx, tx, companyID); err != nil {
		return nil, err
	}
	if err := storeMembership(ctx, tx, companyID, personID); err != nil {
		return nil, err
	}
	return RemoveMember(ctx, tx, companyID, personID)
}

// Activate brings somebody whose profile is kept into the company, with the
// roles that they had before they were switched off. It gives their role and
// their teams. A role that is gone by now, or none, is that of a member.
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
	if _, err := addMember(ctx, tx, companyID, personID, role); err != nil { // which ends the seats
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

// seat is a place in a team that somebody comes back to.
type seat struct{ teamID, role string }

// KeepSeat returns somebody with a kept profile who is no member a place in a team
// for when the directory brings them back, and reports whether they had none.
func KeepSeat(ctx context.Context, tx *sqldb.Tx, t Team, personID string) (fresh bool, err error) {
	// Where an admin took them out. Nobody can end the profile from here on.
	if kept, err := switchOff(ctx, tx, t.CompanyID, personID); err != nil || !kept {
		return false, firstError(err, errNoProfile)
	}
	return insertSeat(ctx, tx, t.ID, personID, RoleMember)
}

// isDeactivated reports whether the company's directory has switched somebody off.
func isDeactivated(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (bool, error) {
	return isOff(ctx, tx, companyID, personID)
}

var errBarred = fault.New(fault.Forbidden, "Your company's directory has switched your account off. Ask its admins.").With("reason", "directory")

// errNoGroup is one answer for teams of others and for those that never were.
var errNoGroup = fault.New(fault.NotFound, "There is no such group.")

// GroupByID returns a group of the company.
func GroupByID(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) (Group, error) {
	if !ids.Valid(teamID) {
		return Group{}, errNoGroup
	}
	return groupByID(ctx, tx, companyID, teamID)
}

// PlacesIn returns the places in some of a company's teams, or with nil in all, by
// address, but not more than limit.
func PlacesIn(ctx context.Context, tx *sqldb.Tx, companyID string, teamIDs []string, limit int) ([]Place, error) {
	if teamIDs != nil && len(teamIDs) == 0 {
		return nil, nil
	}
	return groupPlaces(ctx, tx, companyID, "t.id", teamIDs, limit)
}

// PlacesOf returns the places of some people in a company's teams.
func PlacesOf(ctx context.Context, tx *sqldb.Tx, companyID string, personIDs []string) ([]Place, error) {
	if len(personIDs) == 0 {
		return nil, nil
	}
	return groupPlaces(ctx, tx, companyID, "p.id", personIDs, -1)
}

// OwnsDomain reports whether the company has proven that it owns the domain of an
// address.
func OwnsDomain(ctx context.Context, tx *sqldb.Tx, companyID, email string) (bool, error) {
	all, err := Domains(ctx, tx, companyID)
	return slices.ContainsFunc(all, func(d Domain) bool { return d.Verified != nil && d.Name == domainOf(email) }), err
}
