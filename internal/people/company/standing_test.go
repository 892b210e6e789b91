package company_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
)

func TestStandingOf(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team, other := w.team(c.ID, "Film"), w.team(c.ID, "Print")
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		role := company.TeamRole{
			Name: "intern", Permissions: []company.Permission{company.Generate}, ToolsAllowed: []string{ids.New()}, ToolsBlocked: []string{},
			PluginKinds: []string{"blender"}, Spend: &company.Spend{Tokens: 7, Window: time.Minute},
		}
		w.OK(w.setTeamRole(team.ID, role))
		w.joinTeam(team.ID, anna, "intern")
		w.join(c.ID, bert, "admin")
		want := company.TeamMembership{Team: team, Plan: company.TeamPlan, Role: role}
		if got, err := company.TeamMembershipOf(w.Context(), w.DB, anna, team.ID); err != nil || got.Joined.IsZero() || !reflect.DeepEqual(company.TeamMembership{Team: got.Team, Plan: got.Plan, Role: got.Role}, want) {
			w.Errorf("standing = %+v, %v, want %+v", got, err, want)
		}
		w.joinTeam(team.ID, anna, "manager")
		if got, err := company.TeamMembershipOf(w.Context(), w.DB, anna, team.ID); err != nil || got.Role.Name != "manager" || got.Role.Spend != nil {
			w.Errorf("standing after the change = %+v, %v", got, err)
		}

		removed := w.team(c.ID, "Old")
		w.joinTeam(removed.ID, anna, "member")
		w.Exec(`UPDATE team SET removed = TRUE WHERE id = $1`, removed.ID) // the members are forgotten
		var answers []error
		for _, who := range [][2]string{{bert, team.ID}, {anna, other.ID}, {anna, ids.New()}, {anna, removed.ID}, {anna, ""}, {anna, anna}, {anna, "\x00\xff"}} {
			_, err := company.TeamMembershipOf(w.Context(), w.DB, who[0], who[1])
			answers = append(answers, err)
		}
		for _, err := range answers {
			w.refused(err, fault.Forbidden, "")
			if f, _ := errors.AsType[*fault.Error](err); f.Details["reason"] != "not_a_member" || err.Error() != answers[0].Error() {
				w.Errorf("answers differ: %v and %v", err, answers[0])
			}
		}
		accounts := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.TeamMembership, error) {
			return company.TeamMemberships(w.Context(), tx, anna)
		})
		if len(accounts) != 1 {
			w.Errorf("accounts = %+v, want none of the removed team", accounts)
		}
		w.Exec(`DELETE FROM team_member WHERE team_id = $1`, removed.ID)
	})
}

func TestCompanyStanding(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		w.join(c.ID, anna, "admin")
		w.join(other.ID, bert, "admin")
		role, of, err := company.CompanyMembershipOf(w.Context(), w.DB, anna, c.ID)
		if err != nil || of != c || role.Name != "admin" || !slices.Equal(role.Permissions, everything) {
			w.Errorf("standing = %+v, %+v, %v", role, of, err)
		}
		w.join(c.ID, anna, "member")
		if role, _, err := company.CompanyMembershipOf(w.Context(), w.DB, anna, c.ID); err != nil || role.Name != "member" || len(role.Permissions) != 0 {
			w.Errorf("standing after the change = %+v, %v", role, err)
		}
		_, _, first := company.CompanyMembershipOf(w.Context(), w.DB, bert, c.ID)
		for _, who := range [][2]string{{bert, c.ID}, {anna, other.ID}, {anna, ids.New()}, {anna, ""}, {anna, "\x00"}} {
			_, _, err := company.CompanyMembershipOf(w.Context(), w.DB, who[0], who[1])
			w.refused(err, fault.NotFound, "")
			if err.Error() != first.Error() {
				w.Errorf("answers differ: %v and %v", err, first)
			}
		}
	})
}

func TestAccounts(t *testing.T) {
	each(t, func(w fixture) {
		zoo := w.company("Zoo")
		ark := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (company.Company, error) {
			return company.Create(w.Context(), tx, "Ark", company.EnterprisePlan)
		})
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		teams := []company.Team{w.team(ark.ID, "Print"), w.team(zoo.ID, "Film"), w.team(zoo.ID, "Print")}
		w.joinTeam(w.team(ark.ID, "Film").ID, bert, "member")
		gone := w.team(ark.ID, "Gone")
		for _, team := range []company.Team{teams[2], teams[0], teams[1], gone} {
			w.Pass(time.Hour)
			w.joinTeam(team.ID, anna, "manager")
		}
		w.OK(w.removeTeam(gone.ID))
		got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.TeamMembership, error) {
			return company.TeamMemberships(w.Context(), tx, anna)
		})
		if len(got) != 3 {
			w.Fatalf("accounts = %+v", got)
		}
		for i, a := range got {
			if a.Team != teams[i] || a.Role.Name != "manager" || !slices.Equal(a.Role.PluginKinds, []string{"*"}) || a.How != company.Added {
				w.Errorf("account %d = %+v, want %+v", i, a, teams[i])
			}
		}
		if got[0].Plan != company.EnterprisePlan || got[1].Plan != company.TeamPlan || !got[1].Joined.Equal(w.Now().Add(-time.Hour)) {
			w.Errorf("accounts = %+v", got)
		}
	})
}

func TestJoinedSince(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		anna := w.person("anna@example.com")
		join := func(how company.How) company.Team {
			w.Helper()
			team := w.team(c.ID, string(how))
			w.Pass(time.Second)
			w.Do(func(tx *sqldb.Tx) error {
				_, err := company.SetTeamMember(w.Context(), tx, team.ID, anna, "member", how)
				return err
			})
			return team
		}
		join(company.Invited)
		since := w.Now() // a team joined at that very moment is not new
		byDomain := join(company.ByDomain)
		join(company.Added)
		invited := join(company.Invited)
		removed := join(company.Invited)
		w.Exec(`UPDATE team SET removed = TRUE WHERE id = $1`, removed.ID) // the members are forgotten
		joined := func(since time.Time) []company.Team {
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Team, error) { return company.JoinedSince(w.Context(), tx, anna, since) })
		}
		if got, want := joined(since), []company.Team{byDomain, invited}; !slices.Equal(got, want) {
			w.Errorf("joined = %+v, want %+v", got, want)
		}
		if got := joined(time.Time{}); len(got) != 3 {
			w.Errorf("joined since ever = %+v, want 3", got)
		}
		w.Exec(`DELETE FROM team_member WHERE team_id = $1`, removed.ID)
	})
}
