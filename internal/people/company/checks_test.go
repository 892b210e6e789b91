package company_test

import (
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
)

// Each damage is found by the check that is there for it.
func TestChecksFind(t *testing.T) {
	each(t, func(w fixture) {
		fox, hound := w.company("Fox"), w.company("Hound")
		film, theirs := w.team(fox.ID, "Film"), w.team(hound.ID, "Film")
		anna := w.person("anna@example.com")
		w.joinTeam(film.ID, anna, "member")
		inv, _ := w.invite(company.Draft{CompanyID: fox.ID, TeamID: film.ID, Email: "bert@example.com", Lifetime: time.Hour})
		w.verified(fox.ID, "fox.example", film.ID, "")
		carl := w.person("carl@example.com")
		w.joinTeam(film.ID, carl, "member")
		w.Do(func(tx *sqldb.Tx) error {
			if err := company.StoreProfile(w.Context(), tx, fox.ID, company.Profile{PersonID: carl, Attributes: "{}", Created: tx.Now}); err != nil {
				return err
			}
			if _, err := company.Deactivate(w.Context(), tx, fox.ID, carl); err != nil {
				return err
			}
			return company.StoreGroup(w.Context(), tx, company.Group{Team: film})
		})
		for _, test := range []struct {
			check  string
			damage string
			args   []any
		}{
			{"every company has the role admin with all permissions",
				`UPDATE company_role SET permissions = '[]' WHERE company_id = $1 AND name = 'admin'`, []any{fox.ID}},
			{"every company has the role member",
				`DELETE FROM company_role WHERE company_id = $1 AND name = 'member'`, []any{hound.ID}},
			{"every team has the role member", `DELETE FROM team_role WHERE team_id = $1 AND name = 'member'`, []any{theirs.ID}},
			{"a spending limit has an amount and a window", `UPDATE team_role SET spend_tokens = 1 WHERE team_id = $1 AND name = 'member'`, []any{film.ID}},
			{"a spending limit has an amount and a window",
				`UPDATE team_role SET spend_tokens = 1, spend_seconds = 0 WHERE team_id = $1 AND name = 'member'`, []any{film.ID}},
			{"every member of a team is a member of its company", `DELETE FROM company_member WHERE person_id = $1`, []any{anna}},
			{"a removed team has no members", `UPDATE team SET removed = TRUE WHERE id = $1`, []any{film.ID}},
			{"secrets of invitations are stored only as SHA-256", `UPDATE invitation SET hash = 'secret' WHERE id = $1`, []any{inv.ID}},
			{"an invitation for one e-mail address can be used once", `UPDATE invitation SET uses_left = 2 WHERE id = $1`, []any{inv.ID}},
			{"an invitation for one e-mail address can be used once", `UPDATE invitation SET email_key = '' WHERE id = $1`, []any{inv.ID}},
			{"the role of an invitation is a role of its company", `UPDATE invitation SET company_role = 'keeper' WHERE id = $1`, []any{inv.ID}},
			{"the team of an invitation belongs to its company", `UPDATE invitation SET team_id = $2 WHERE id = $1`, []any{inv.ID, theirs.ID}},
			{"the team of an invitation belongs to its company", `UPDATE invitation SET team_role = 'keeper' WHERE id = $1`, []any{inv.ID}},
			{"the team of an invitation belongs to its company", `UPDATE team SET removed = TRUE WHERE id = $1`, []any{film.ID}},
			{"the team of an invitation belongs to its company", `UPDATE invitation SET team_id = NULL WHERE id = $1`, []any{inv.ID}},
			{"a deactivated SCIM user is not a member",
				`INSERT INTO company_member (company_id, person_id, role, created) VALUES ($1, $2, 'member', 0)`, []any{fox.ID, carl}},
			{"only deactivated SCIM users have reserved seats", `UPDATE scim_user SET active = TRUE WHERE person_id = $1`, []any{carl}},
			{"only deactivated SCIM users have reserved seats", `UPDATE team SET removed = TRUE WHERE id = $1`, []any{film.ID}},
			{"the team of a SCIM group belongs to its company", `UPDATE scim_group SET company_id = $2 WHERE team_id = $1`, []any{film.ID, hound.ID}},
			{"the team of a domain belongs to its company", `UPDATE company_domain SET team_id = $2 WHERE company_id = $1`, []any{fox.ID, theirs.ID}},
			{"the team of a domain belongs to its company", `UPDATE company_domain SET team_role = 'keeper' WHERE company_id = $1`, []any{fox.ID}},
		} {
			found := w.Damage(company.Checks, test.damage, test.args...)
			if !found[test.check] {
				w.Errorf("after %s the checks found %v, want %q", test.damage, found, test.check)
			}
		}
	})
}
