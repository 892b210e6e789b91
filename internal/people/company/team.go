package company

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Team is a part of a company that works and pays together.
type Team struct {
	ID        string
	CompanyID string
	Name      string
	Created   time.Time
}

// ListKey is where the team stands in a list.
func (t Team) ListKey() Key { return Key{t.Name, t.ID} }

// errNoTeam is one answer for teams that were removed and for those that never
// were.
var errNoTeam = fault.New(fault.NotFound, "There is no such team.")

// CreateTeam makes a team with the roles member, who may work with all tools
// and plugins, and manager, who may manage the team besides.
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

// TeamByID returns a team that is not removed.
func TeamByID(ctx context.Context, tx *sqldb.Tx, id string) (Team, error) {
	if !ids.Valid(id) {
		return Team{}, errNoTeam
	}
	return teamByID(ctx, tx, id)
}

// RenameTeam returns a team another name.
func RenameTeam(ctx context.Context, tx *sqldb.Tx, id, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := lockTeam(ctx, tx, id); err != nil {
		return err
	}
	return renameTeam(ctx, tx, id, name)
}

// RemoveTeam ends a team: nobody is in it any more, and nothing leads into it.
// Its row and its roles stay for what refers to them.
func RemoveTeam(ctx context.Context, tx *sqldb.Tx, id string) error {
	if _, err := lockTeam(ctx, tx, id); err != nil {
		return err
	}
	return removeTeam(ctx, tx, id)
}
