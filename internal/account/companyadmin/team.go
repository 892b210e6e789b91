package companyadmin

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// Teams manages the teams of companies.
type Teams struct {
	db auditedDB
}

// ListTeams returns at most limit teams of a company, ordered by name, starting
// after the given position.
func (s *Teams) ListTeams(ctx context.Context, caller principal.Principal, companyID string, after company.Key, limit int) (all []company.Team, err error) {
	err = s.db.readCompany(ctx, caller, companyID, allowMembers, func(tx *sqldb.Tx, _ companyAccess) error {
		all, err = company.Teams(ctx, tx, companyID, after, limit)
		return err
	})
	return all, err
}

// CreateTeam creates a team without members.
func (s *Teams) CreateTeam(ctx context.Context, caller principal.Principal, companyID, name string) (team company.Team, err error) {
	err = s.db.changeCompany(ctx, caller, companyID, requireManageTeams, func(tx *sqldb.Tx, _ companyAccess) (audit.Entry, error) {
		team, err = company.CreateTeam(ctx, tx, companyID, name)
		return audit.Entry{Act: audit.TeamCreated, Details: map[string]string{"team": team.ID, "name": name}}, err
	})
	return team, err
}

// GetTeam returns a team of a company of which the caller is a member.
func (s *Teams) GetTeam(ctx context.Context, caller principal.Principal, teamID string) (team company.Team, err error) {
	err = s.db.readTeam(ctx, caller, teamID, allowCompanyMembers, func(_ *sqldb.Tx, t teamAccess) error {
		team = t.team
		return nil
	})
	return team, err
}

// RenameTeam changes a team's name.
func (s *Teams) RenameTeam(ctx context.Context, caller principal.Principal, teamID, name string) (team company.Team, err error) {
	err = s.db.changeTeam(ctx, caller, teamID, requireManageTeam, func(tx *sqldb.Tx, t teamAccess) (audit.Entry, error) {
		team = t.team
		team.Name = name
		e := audit.Entry{Act: audit.TeamChanged, Details: map[string]string{"team": teamID, "name": name, "before": t.team.Name}}
		return e.WithChange(t.team.Name, name), company.RenameTeam(ctx, tx, teamID, name)
	})
	return team, err
}

// RemoveTeam removes a team from its company. Its members stay members of the
// company.
func (s *Teams) RemoveTeam(ctx context.Context, caller principal.Principal, teamID string) error {
	return s.db.changeTeam(ctx, caller, teamID, requireManageAllTeams, func(tx *sqldb.Tx, t teamAccess) (audit.Entry, error) {
		e := audit.Entry{Act: audit.TeamRemoved, Details: map[string]string{"team": teamID, "name": t.team.Name}}
		return e, company.RemoveTeam(ctx, tx, teamID)
	})
}
