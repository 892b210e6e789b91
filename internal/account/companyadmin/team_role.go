package companyadmin

import (
	"context"
	"slices"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// TeamRoles manages the roles of teams.
type TeamRoles struct {
	db auditedDB
}

// ListTeamRoles returns a team's roles, ordered by name.
func (s *TeamRoles) ListTeamRoles(ctx context.Context, caller principal.Principal, teamID string) (all []company.TeamRole, err error) {
	err = s.db.readTeam(ctx, caller, teamID, requireTeamMember, func(tx *sqldb.Tx, _ teamAccess) error {
		all, err = company.TeamRoles(ctx, tx, teamID)
		return err
	})
	return all, err
}

// SetTeamRole creates a role of a team, or replaces all values of an existing
// role.
func (s *TeamRoles) SetTeamRole(ctx context.Context, caller principal.Principal, teamID string, r company.TeamRole) (stored company.TeamRole, err error) {
	err = s.db.changeTeam(ctx, caller, teamID, requireManageTeam, func(tx *sqldb.Tx, t teamAccess) (e audit.Entry, err error) {
		stored, e, err = t.setTeamRole(ctx, tx, r)
		return e, err
	})
	return stored, err
}

// SetTeamRolePermissions adds permissions to a role of a team (true in changes)
// or removes them (false), and leaves the role's limits unchanged. A role that
// does not exist is created; it allows all tools and plugins, and has the
// permissions to generate and to use plugins.
func (s *TeamRoles) SetTeamRolePermissions(ctx context.Context, caller principal.Principal, teamID, name string, changes map[company.Permission]bool) (stored company.TeamRole, err error) {
	err = s.db.changeTeam(ctx, caller, teamID, requireManageTeam, func(tx *sqldb.Tx, t teamAccess) (e audit.Entry, err error) {
		r, err := company.TeamRoleByName(ctx, tx, teamID, name)
		if fault.Is(err, fault.NotFound) {
			r = company.TeamRole{
				Name:        name,
				Permissions: []company.Permission{company.UsePlugins, company.Generate},
				PluginKinds: []string{company.AnyKind},
			}
			err = nil
		}
		if err != nil {
			return e, err
		}

		for perm, granted := range changes {
			r.Permissions = slices.DeleteFunc(r.Permissions, func(has company.Permission) bool { return has == perm })
			// An unknown permission is added even if it is to be removed, so
			// that the validation refuses it.
			if granted || !slices.Contains(company.TeamPermissions, perm) {
				r.Permissions = append(r.Permissions, perm)
			}
		}
		stored, e, err = t.setTeamRole(ctx, tx, r)
		return e, err
	})
	return stored, err
}

// setTeamRole stores a role of the team if the caller is allowed to grant the
// role.
func (t teamAccess) setTeamRole(ctx context.Context, tx *sqldb.Tx, r company.TeamRole) (stored company.TeamRole, e audit.Entry, err error) {
	before, err := t.findTeamRole(ctx, tx, r.Name)
	if err != nil {
		return stored, e, err
	}
	// The permissions of the old role are checked before the new values are
	// validated, so that callers who may not change the role get the same error
	// for all values.
	if err := t.requireRolePermissions(before); err != nil {
		return stored, e, err
	}

	if err := company.SetTeamRole(ctx, tx, t.team.ID, r); err != nil {
		return stored, e, err
	}
	stored, err = company.TeamRoleByName(ctx, tx, t.team.ID, r.Name)
	if err != nil {
		return stored, e, err
	}
	if err := t.authorizeRoleChange(before, stored); err != nil {
		return stored, e, err
	}

	e = audit.Entry{Act: audit.TeamRoleSet, Details: map[string]string{"team": t.team.ID, "role": r.Name, "permissions": joinPermissions(stored.Permissions)}}
	return stored, e.WithChange(describeTeamRole(before), describeTeamRole(&stored)), nil
}

// DeleteTeamRole deletes a role of a team. It refuses a role that a member, a
// live invitation or a mail domain has.
func (s *TeamRoles) DeleteTeamRole(ctx context.Context, caller principal.Principal, teamID, name string) error {
	return s.db.changeTeam(ctx, caller, teamID, requireManageTeam, func(tx *sqldb.Tx, t teamAccess) (e audit.Entry, err error) {
		before, err := t.findTeamRole(ctx, tx, name)
		if err != nil {
			return e, err
		}
		if err := t.requireRolePermissions(before); err != nil {
			return e, err
		}

		e = audit.Entry{Act: audit.TeamRoleDeleted, Details: map[string]string{"team": teamID, "role": name}}
		return e.WithChange(describeTeamRole(before), ""), company.DeleteTeamRole(ctx, tx, teamID, name)
	})
}
