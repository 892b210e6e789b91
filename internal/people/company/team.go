package company

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Team is a group of people in a company. It has its own account.
type Team struct {
	ID        string
	CompanyID string
	Name      string
	Created   time.Time
}

// ListKey returns the team's position in a list that is sorted by team name.
func (t Team) ListKey() Key { return Key{t.Name, t.ID} }

// errNoTeam is returned both for unknown teams and for removed teams.
var errNoTeam = fault.New(fault.NotFound, "There is no such team.")

// CreateTeam creates a team with two roles: "member", which allows using all
// tools and plugins, and "manager", which also allows managing the team.
func CreateTeam(ctx context.Context, tx *sqldb.Tx, companyID, name string) (Team, error) {
	if err := checkName(name); err != nil {
		return Team{}, err
	}
	if err := Lock(ctx, tx, companyID); err != nil {
		return Team{}, err
	}
	t := Team{ID: ids.New(), CompanyID: companyID, Name: name, Created: tx.Now}
	if err := insertTeam(ctx, tx, t); err != nil {
		return Team{}, err
	}
	for _, r := range []TeamRole{
		{Name: RoleMember, Permissions: sortUnique([]Permission{UsePlugins, Generate})},
		{Name: RoleManager, Permissions: sortUnique(TeamPermissions)},
	} {
		r.PluginKinds = []string{AnyKind}
		if err := putTeamRole(ctx, tx, t.ID, r); err != nil {
			return Team{}, err
		}
	}
	return t, nil
}

// TeamByID returns the team with the given id, or errNoTeam if it is removed or
// unknown.
func TeamByID(ctx context.Context, tx *sqldb.Tx, id string) (Team, error) {
	if !ids.Valid(id) {
		return Team{}, errNoTeam
	}
	return teamByID(ctx, tx, id)
}

// RenameTeam changes a team's name.
func RenameTeam(ctx context.Context, tx *sqldb.Tx, id, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := lockTeam(ctx, tx, id); err != nil {
		return err
	}
	return renameTeam(ctx, tx, id, name)
}

// RemoveTeam marks a team as removed and deletes its members, SCIM seats and
// invitations. Mail domains no longer assign people to the team. The rows of
// the team and its roles remain, because other tables refer to them.
func RemoveTeam(ctx context.Context, tx *sqldb.Tx, id string) error {
	if _, err := lockTeam(ctx, tx, id); err != nil {
		return err
	}
	return removeTeam(ctx, tx, id)
}
