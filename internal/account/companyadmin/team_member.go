package companyadmin

import (
	"context"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// TeamMembers manages the members of teams.
type TeamMembers struct {
	db auditedDB
}

// ListTeamMembers returns at most limit members of a team, ordered by mail
// address, starting after the given position.
func (s *TeamMembers) ListTeamMembers(ctx context.Context, caller principal.Principal, teamID string, after company.Key, limit int) (all []company.TeamMember, err error) {
	err = s.db.readTeam(ctx, caller, teamID, requireTeamMember, func(tx *sqldb.Tx, _ teamAccess) error {
		all, err = company.TeamMembers(ctx, tx, teamID, after, limit)
		return err
	})
	return all, err
}

// SetTeamMember adds a member of the company to the team, or assigns them
// another role in it. The operator can also add a person who is not in the
// company; the person then joins the company with the role "member".
func (s *TeamMembers) SetTeamMember(ctx context.Context, caller principal.Principal, teamID, personID, role string) (m company.TeamMember, err error) {
	err = s.db.changeTeamAndPerson(ctx, caller, teamID, personID, requireManageTeam, func(tx *sqldb.Tx, t teamAccess) (e audit.Entry, err error) {
		if err := t.requireMember(ctx, tx, personID); err != nil {
			return e, err
		}
		before, err := t.findMemberRole(ctx, tx, personID)
		if err != nil {
			return e, err
		}
		if err := t.authorizeNamedRole(ctx, tx, before, role); err != nil {
			return e, err
		}

		p, err := lockPerson(ctx, tx, personID)
		if err != nil {
			return e, err
		}
		if _, err := company.SetTeamMember(ctx, tx, teamID, personID, role, company.Added); err != nil {
			return e, err
		}

		account, err := FindTeamAccount(ctx, tx, personID, teamID)
		if err != nil {
			return e, err
		}
		if account == nil {
			return e, errNoMember
		}
		m = company.TeamMember{Member: company.Member{PersonID: p.ID, Email: p.Email, Role: account.Role.Name, Joined: account.Joined}, How: account.How}
		e = audit.Entry{Act: audit.TeamMemberSet, PersonID: personID, Details: map[string]string{"team": teamID, "role": role}}
		return e.WithChange(teamRoleName(before), role), nil
	})
	return m, err
}

// AddTeamMember is SetTeamMember for the person with the given e-mail address. If
// role is "", it assigns the role "member". Only the operator may call it.
func (s *TeamMembers) AddTeamMember(ctx context.Context, caller principal.Principal, teamID, email, role string) (personID string, err error) {
	if personID, err = s.db.findIDByEmail(ctx, caller, email); err != nil {
		return "", err
	}
	_, err = s.SetTeamMember(ctx, caller, teamID, personID, roleOrMember(role))
	return personID, err
}

// RemoveTeamMember removes a person from the team. Every member can remove
// themselves.
func (s *TeamMembers) RemoveTeamMember(ctx context.Context, caller principal.Principal, teamID, personID string) error {
	rule := requireManageTeam
	if personID == caller.PersonID {
		rule = allowCompanyMembers
	}

	err := s.db.changeTeam(ctx, caller, teamID, rule, func(tx *sqldb.Tx, t teamAccess) (e audit.Entry, err error) {
		before, err := t.findMemberRole(ctx, tx, personID)
		if err != nil {
			return e, err
		}
		if err := t.requireRolePermissions(before); err != nil {
			return e, err
		}

		e = audit.Entry{Act: audit.TeamMemberRemoved, PersonID: personID, Details: map[string]string{"team": teamID}}
		return e.WithChange(teamRoleName(before), ""), company.RemoveTeamMember(ctx, tx, teamID, personID)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// RemoveTeamMemberByEmail is RemoveTeamMember for the person with the given
// e-mail address. Only the operator may call it.
func (s *TeamMembers) RemoveTeamMemberByEmail(ctx context.Context, caller principal.Principal, teamID, email string) error {
	personID, err := s.db.findIDByEmail(ctx, caller, email)
	if err != nil {
		return err
	}
	return s.RemoveTeamMember(ctx, caller, teamID, personID)
}
