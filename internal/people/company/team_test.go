package company_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
)

func (w fixture) teamByID(id string) (t company.Team, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) { t, err = company.TeamByID(w.Context(), tx, id); return err })
	return t, err
}

func (w fixture) removeTeam(id string) error {
	return w.Try(func(tx *sqldb.Tx) error { return company.RemoveTeam(w.Context(), tx, id) })
}

func TestTeam(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		if team.CompanyID != c.ID || team.Name != "Film" || !team.Created.Equal(w.Now()) || !ids.Valid(team.ID) {
			w.Errorf("made %+v", team)
		}
		if got, err := w.teamByID(team.ID); err != nil || got != team {
			w.Errorf("by id = %+v, %v, want %+v", got, err, team)
		}
		rename := func(id, name string) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.RenameTeam(w.Context(), tx, id, name) })
		}
		w.OK(rename(team.ID, "Film 2"))
		if got, _ := w.teamByID(team.ID); got.Name != "Film 2" {
			w.Errorf("name = %q after renaming", got.Name)
		}
		for _, name := range badNames {
			w.refused(rename(team.ID, name), fault.Invalid, "name")
			w.refused(w.Try(func(tx *sqldb.Tx) error { _, err := company.CreateTeam(w.Context(), tx, c.ID, name); return err }), fault.Invalid, "name")
		}
		w.refused(w.Try(func(tx *sqldb.Tx) error {
			_, err := company.CreateTeam(w.Context(), tx, ids.New(), "Film")
			return err
		}), fault.NotFound, "")
		for _, id := range []string{"", ids.New(), "\x00", c.ID} {
			_, err := w.teamByID(id)
			w.refused(err, fault.NotFound, "")
			w.refused(rename(id, "Film"), fault.NotFound, "")
			w.refused(w.removeTeam(id), fault.NotFound, "")
		}
	})
}

func TestRemovedTeamIsGone(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		film, print := w.team(c.ID, "Film"), w.team(c.ID, "Print")
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		w.joinTeam(film.ID, anna, "member")
		w.joinTeam(print.ID, anna, "member")
		_, secret := w.invite(company.Draft{CompanyID: c.ID, TeamID: film.ID, Lifetime: time.Hour})
		_, kept := w.invite(company.Draft{CompanyID: c.ID, TeamID: print.ID, Lifetime: time.Hour})
		w.domain(c.ID, "film.example", film.ID, "manager")
		w.domain(c.ID, "print.example", print.ID, "manager")

		w.OK(w.removeTeam(film.ID))
		w.refused(w.removeTeam(film.ID), fault.NotFound, "")
		_, err := w.teamByID(film.ID)
		w.refused(err, fault.NotFound, "")
		err = w.Try(func(tx *sqldb.Tx) error { return company.RenameTeam(w.Context(), tx, film.ID, "Film") })
		w.refused(err, fault.NotFound, "")
		err = w.Try(func(tx *sqldb.Tx) error {
			_, err := company.SetTeamMember(w.Context(), tx, film.ID, bert, "member", company.Added)
			return err
		})
		w.refused(err, fault.NotFound, "")
		w.refused(w.setTeamRole(film.ID, company.TeamRole{Name: "intern"}), fault.NotFound, "")
		w.refused(w.accept(secret, bert, "bert@example.com"), fault.NotFound, "")
		w.OK(w.accept(kept, bert, "bert@example.com"))
		if n := len(w.teamMembers(film.ID)); n != 0 {
			w.Errorf("%d are still in it", n)
		}
		if n := len(w.teamMembers(print.ID)); n != 2 {
			w.Errorf("%d are in the other, want 2", n)
		}
		domains := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Domain, error) { return company.Domains(w.Context(), tx, c.ID) })
		if len(domains) != 2 || domains[0].TeamID != "" || domains[0].TeamRole != "" || domains[1].TeamID != print.ID || domains[1].TeamRole != "manager" {
			w.Errorf("domains = %+v", domains)
		}
		left := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Team, error) {
			return company.Teams(w.Context(), tx, c.ID, company.Key{}, 10)
		})
		if !slices.Equal(left, []company.Team{print}) {
			w.Errorf("teams = %+v, want %+v", left, print)
		}
	})
}

func TestTeamsPageByName(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		w.team(other.ID, "b")
		for _, name := range []string{"b", "c", "b", "a", "b"} {
			w.team(c.ID, name)
		}
		var names []string
		ids := map[string]bool{}
		for after := (company.Key{}); len(names) < 10; {
			page := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Team, error) { return company.Teams(w.Context(), tx, c.ID, after, 2) })
			if len(page) == 0 {
				break
			}
			for _, team := range page {
				names, ids[team.ID], after = append(names, team.Name), true, team.ListKey()
			}
		}
		if want := []string{"a", "b", "b", "b", "c"}; !slices.Equal(names, want) || len(ids) != len(want) {
			w.Errorf("pages = %v with %d ids, want %v", names, len(ids), want)
		}
	})
}

// TestListsById reads companies and teams in pages.
func TestListsById(t *testing.T) {
	each(t, func(w fixture) {
		var companies, teams, ofFirst []string
		for _, name := range []string{"One", "Two", "Three"} {
			c := w.company(name)
			companies = append(companies, c.ID)
			for range 2 {
				id := w.team(c.ID, "Look").ID
				teams = append(teams, id)
				if name == "One" {
					ofFirst = append(ofFirst, id)
				}
			}
		}
		removed := w.team(companies[0], "Gone")
		w.Do(func(tx *sqldb.Tx) error { return company.RemoveTeam(w.Context(), tx, removed.ID) })
		w.joinTeam(ofFirst[0], w.person("anna@example.com"), company.RoleMember)

		pages := func(read func(tx *sqldb.Tx, after string) (ids []string, err error)) (all []string) {
			for after := ""; ; {
				var ids []string
				w.Do(func(tx *sqldb.Tx) (err error) { ids, err = read(tx, after); return err })
				all = append(all, ids...)
				if len(ids) < 2 {
					return all
				}
				after = ids[1]
			}
		}
		ids := func(all []company.Team) (ids []string) {
			for _, t := range all {
				ids = append(ids, t.ID)
			}
			return ids
		}
		for name, c := range map[string]struct{ got, want []string }{
			"companies": {pages(func(tx *sqldb.Tx, after string) (ids []string, err error) {
				all, err := company.List(w.Context(), tx, "", after, 2)
				for _, c := range all {
					ids = append(ids, c.ID)
				}
				return ids, err
			}), companies},
			"teams": {pages(func(tx *sqldb.Tx, after string) ([]string, error) {
				all, err := company.ListTeams(w.Context(), tx, "", after, 2)
				return ids(all), err
			}), teams},
			"teams of one": {pages(func(tx *sqldb.Tx, after string) ([]string, error) {
				all, err := company.ListTeams(w.Context(), tx, companies[0], after, 2)
				return ids(all), err
			}), ofFirst},
		} {
			if want := slices.Sorted(slices.Values(c.want)); !slices.Equal(slices.Sorted(slices.Values(c.got)), want) {
				w.Errorf("%s = %q, want %q", name, c.got, want)
			}
		}
		w.Do(func(tx *sqldb.Tx) error {
			members, teams, err := company.Count(w.Context(), tx, companies[0])
			if members != 1 || teams != 2 {
				w.Errorf("%d members and %d teams, want 1 and 2", members, teams)
			}
			inTeam, err2 := company.CountTeamMembers(w.Context(), tx, ofFirst[0])
			if inTeam != 1 {
				w.Errorf("%d in the team, want 1", inTeam)
			}
			return errors.Join(err, err2)
		})
	})
}
