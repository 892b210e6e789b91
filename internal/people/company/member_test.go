package company_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
)

func (w fixture) setMember(companyID, personID, role string) error {
	return w.Try(func(tx *sqldb.Tx) error {
		_, err := company.SetMember(w.Context(), tx, companyID, personID, role)
		return err
	})
}

func (w fixture) removeMember(companyID, personID string) (teams []string, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		teams, err = company.RemoveMember(w.Context(), tx, companyID, personID)
		return err
	})
	return teams, err
}

func (w fixture) members(companyID string) []company.Member {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Member, error) {
		return company.Members(w.Context(), tx, companyID, company.Key{}, 1000)
	})
}

func (w fixture) teamMembers(teamID string) []company.TeamMember {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.TeamMember, error) {
		return company.TeamMembers(w.Context(), tx, teamID, company.Key{}, 1000)
	})
}

func (w fixture) hasAdmin(companyID string) bool {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return company.HasAdmin(w.Context(), tx, companyID) })
}

func TestMembers(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		bert, anna := w.person("bert@example.com"), w.person("Anna@example.com")
		first := w.Now()
		if !w.join(c.ID, anna, "member") {
			w.Error("a new member is not fresh")
		}
		w.Pass(time.Hour)
		if w.join(c.ID, anna, "admin") {
			w.Error("a member who was there is fresh")
		}
		w.join(c.ID, bert, "member")
		w.join(other.ID, bert, "admin")
		want := []company.Member{{anna, "Anna@example.com", "admin", first}, {bert, "bert@example.com", "member", w.Now()}}
		if got := w.members(c.ID); !slices.Equal(got, want) {
			w.Errorf("members = %+v, want %+v", got, want)
		}
		for _, role := range []string{"", "keeper", "Admin", "\x00"} {
			w.refused(w.setMember(c.ID, anna, role), fault.Invalid, "role")
		}
		w.refused(w.setMember(ids.New(), anna, "member"), fault.NotFound, "")
		w.refused(w.setMember("\x00", anna, "member"), fault.NotFound, "")
		if teams, err := w.removeMember(c.ID, bert); err != nil || len(teams) != 0 {
			w.Errorf("remove = %v, %v", teams, err)
		}
		for _, where := range [][2]string{{c.ID, bert}, {c.ID, "\x00"}, {ids.New(), anna}} {
			_, err := w.removeMember(where[0], where[1])
			w.refused(err, fault.NotFound, "")
		}
		if got := w.members(other.ID); len(got) != 1 {
			w.Errorf("members of another company = %v", got)
		}
	})
}

func TestRemovingAMemberEmptiesTheirPlacesInTeams(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		film, print, else_ := w.team(c.ID, "Film"), w.team(c.ID, "Print"), w.team(other.ID, "Film")
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		for _, team := range []company.Team{film, print, else_} {
			w.joinTeam(team.ID, anna, "member")
			w.joinTeam(team.ID, bert, "member")
		}
		teams, err := w.removeMember(c.ID, anna)
		slices.Sort(teams)
		if want := sortedIDs(film.ID, print.ID); err != nil || !slices.Equal(teams, want) {
			w.Errorf("teams = %v, %v, want %v", teams, err, want)
		}
		for team, want := range map[string]int{film.ID: 1, print.ID: 1, else_.ID: 2} {
			if got := len(w.teamMembers(team)); got != want {
				w.Errorf("team has %d members, want %d", got, want)
			}
		}
	})
}

func sortedIDs(ids ...string) []string { slices.Sort(ids); return ids }

func TestMembersPageByAddress(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		for _, name := range []string{"d", "B", "a", "C", "e"} {
			w.joinTeam(team.ID, w.person(name+"@example.com"), "member")
		}
		want := []string{"a@example.com", "B@example.com", "C@example.com", "d@example.com", "e@example.com"}
		var inCompany, inTeam []string
		for after := (company.Key{}); len(inCompany) < 10; {
			page := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Member, error) { return company.Members(w.Context(), tx, c.ID, after, 2) })
			if len(page) == 0 {
				break
			}
			for _, m := range page {
				inCompany, after = append(inCompany, m.Email), m.ListKey()
			}
		}
		for after := (company.Key{}); len(inTeam) < 10; {
			page := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.TeamMember, error) {
				return company.TeamMembers(w.Context(), tx, team.ID, after, 2)
			})
			if len(page) == 0 {
				break
			}
			for _, m := range page {
				inTeam, after = append(inTeam, m.Email), m.ListKey()
			}
		}
		if !slices.Equal(inCompany, want) || !slices.Equal(inTeam, want) {
			w.Errorf("pages = %v and %v, want %v", inCompany, inTeam, want)
		}
	})
}

func TestTeamMembers(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		set := func(personID, role string, how company.How) (fresh bool, err error) {
			err = w.Try(func(tx *sqldb.Tx) (err error) {
				fresh, err = company.SetTeamMember(w.Context(), tx, team.ID, personID, role, how)
				return err
			})
			return fresh, err
		}
		first := w.Now()
		w.join(c.ID, anna, "admin")
		if fresh, err := set(anna, "member", company.ByDomain); err != nil || !fresh {
			w.Errorf("a new member = %v, %v", fresh, err)
		}
		w.Pass(time.Hour)
		if fresh, err := set(anna, "manager", company.Added); err != nil || fresh {
			w.Errorf("another role = %v, %v", fresh, err)
		}
		if fresh, err := set(bert, "member", company.Added); err != nil || !fresh {
			w.Errorf("a stranger to the company = %v, %v", fresh, err)
		}
		want := []company.TeamMember{
			{company.Member{PersonID: anna, Email: "anna@example.com", Role: "manager", Joined: first}, company.ByDomain},
			{company.Member{PersonID: bert, Email: "bert@example.com", Role: "member", Joined: w.Now()}, company.Added},
		}
		if got := w.teamMembers(team.ID); !slices.Equal(got, want) {
			w.Errorf("members = %+v, want %+v", got, want)
		}
		if all := w.members(c.ID); len(all) != 2 || all[0].Role != "admin" || all[1].Role != "member" {
			w.Errorf("members of the company = %+v, want anna as she was and bert", all)
		}
		for _, role := range []string{"", "keeper", "\x00"} {
			_, err := set(anna, role, company.Added)
			w.refused(err, fault.Invalid, "role")
		}
		remove := func(teamID, personID string) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.RemoveTeamMember(w.Context(), tx, teamID, personID) })
		}
		w.OK(remove(team.ID, bert))
		w.refused(remove(team.ID, bert), fault.NotFound, "")
		w.refused(remove(team.ID, "\x00"), fault.NotFound, "")
		w.refused(remove(ids.New(), anna), fault.NotFound, "")
		if len(w.members(c.ID)) != 2 {
			w.Error("leaving a team left the company")
		}
	})
}

func TestHasAdmin(t *testing.T) {
	each(t, func(w fixture) {
		c, other := w.company("Fox"), w.company("Hound")
		anna := w.person("anna@example.com")
		w.join(other.ID, anna, "admin")
		want := func(want bool, when string) {
			w.Helper()
			if got := w.hasAdmin(c.ID); got != want {
				w.Errorf("has an admin %s = %v", when, got)
			}
		}
		want(false, "with nobody in it")
		w.join(c.ID, anna, "member")
		want(false, "with a plain member")
		w.join(c.ID, anna, "admin")
		want(true, "with an admin")
		w.role(c.ID, "keeper", company.ManageMembers, company.ManageTeams)
		w.join(c.ID, anna, "keeper")
		want(true, "with somebody who manages members")
		w.role(c.ID, "keeper", company.ManageTeams)
		want(false, "after the role lost the permission")
	})
}

// Each admin drops the other and looks whether one is left: without a lock both
// would see the one who is about to go.
func TestTwoAdminsCannotDropEachOther(t *testing.T) {
	each(t, func(w fixture) {
		errLast := errors.New("last admin")
		for round := range 10 {
			c := w.company("Fox")
			var admins [2]string
			for i := range admins {
				admins[i] = w.person(fmt.Sprintf("a%d.%d@example.com", round, i))
				w.join(c.ID, admins[i], "admin")
			}
			dbtest.Together(2, func(i int) {
				err := w.Try(func(tx *sqldb.Tx) error {
					var err error
					if round%2 == 0 {
						_, err = company.SetMember(w.Context(), tx, c.ID, admins[i], "member")
					} else {
						_, err = company.RemoveMember(w.Context(), tx, c.ID, admins[i])
					}
					if err != nil {
						return err
					}
					if has, err := company.HasAdmin(w.Context(), tx, c.ID); err != nil || !has {
						return errors.Join(err, errLast)
					}
					return nil
				})
				if err != nil && !errors.Is(err, errLast) {
					w.Error(err)
				}
			})
			if !w.hasAdmin(c.ID) {
				w.Fatal("nobody is left who manages members")
			}
		}
	})
}

func TestManySetMembersAtOnceMakeOne(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c.ID, "Film")
		anna := w.person("anna@example.com")
		var fresh, freshInTeam atomic.Int64
		dbtest.Together(32, func(i int) {
			err := w.Try(func(tx *sqldb.Tx) error {
				is, err := company.SetMember(w.Context(), tx, c.ID, anna, []string{"member", "admin"}[i%2])
				if err == nil && is {
					tx.AfterCommit(func() { fresh.Add(1) })
				}
				return err
			})
			if err != nil {
				w.Error(err)
			}
			err = w.Try(func(tx *sqldb.Tx) error {
				is, err := company.SetTeamMember(w.Context(), tx, team.ID, anna, []string{"member", "manager"}[i%2], company.Added)
				if err == nil && is {
					tx.AfterCommit(func() { freshInTeam.Add(1) })
				}
				return err
			})
			if err != nil {
				w.Error(err)
			}
		})
		if fresh.Load() > 1 || freshInTeam.Load() != 1 || len(w.members(c.ID)) != 1 || len(w.teamMembers(team.ID)) != 1 {
			w.Errorf("%d and %d were fresh, members %v", fresh.Load(), freshInTeam.Load(), w.members(c.ID))
		}
	})
}

// Comings, goings and the end of the team, all at once: the checks at the end
// find nobody in a team who is not in the company, nor in the removed one.
func TestMembershipHoldsUnderEverythingAtOnce(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		stays, goes := w.team(c.ID, "Film"), w.team(c.ID, "Print")
		var people []string
		for i := range 4 {
			people = append(people, w.person(fmt.Sprintf("p%d@example.com", i)))
		}
		_, link := w.invite(company.Draft{CompanyID: c.ID, TeamID: goes.ID, Uses: 1000, Lifetime: time.Hour})
		w.verified(c.ID, "example.com", goes.ID, "")
		dbtest.Together(24, func(i int) {
			err := w.Try(func(tx *sqldb.Tx) (err error) {
				who := people[i%len(people)]
				switch i / len(people) {
				case 0:
					_, err = company.SetTeamMember(w.Context(), tx, stays.ID, who, "member", company.Added)
				case 1:
					_, err = company.SetTeamMember(w.Context(), tx, goes.ID, who, "member", company.Added)
				case 2:
					_, err = company.RemoveMember(w.Context(), tx, c.ID, who)
				case 3:
					_, _, err = company.AcceptSecret(w.Context(), tx, link, who, "")
				case 4:
					_, _, err = company.JoinByDomain(w.Context(), tx, who, "x@example.com")
				case 5:
					err = company.RemoveTeam(w.Context(), tx, goes.ID)
				}
				return err
			})
			if f, ok := errors.AsType[*fault.Error](err); err != nil && (!ok || f.Code != fault.NotFound) {
				w.Error(err)
			}
		})
		for _, who := range people {
			_, err := company.TeamMembershipOf(w.Context(), w.DB, who, goes.ID)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Forbidden {
				w.Errorf("standing in a removed team = %v", err)
			}
		}
	})
}

func TestHoldMember(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		hold := func(companyID, personID string) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.LockMember(w.Context(), tx, companyID, personID) })
		}
		w.join(c.ID, anna, "member")
		w.OK(hold(c.ID, anna))
		for _, where := range [][2]string{{c.ID, bert}, {c.ID, "\x00"}, {ids.New(), anna}} {
			w.refused(hold(where[0], where[1]), fault.NotFound, "")
		}
		// Whoever holds a member writes a notice; whoever removes one deletes it.
		for range 10 {
			w.join(c.ID, anna, "member")
			dbtest.Together(2, func(i int) {
				err := w.Try(func(tx *sqldb.Tx) error {
					if i == 0 {
						if err := company.LockMember(w.Context(), tx, c.ID, anna); err != nil {
							return err
						}
						_, err := tx.Exec(w.Context(), `INSERT INTO person_notice (id, person_id, kind, text, created) VALUES ($1, $2, '', '', 0)`, ids.New(), anna)
						return err
					}
					if _, err := company.RemoveMember(w.Context(), tx, c.ID, anna); err != nil {
						return err
					}
					_, err := tx.Exec(w.Context(), `DELETE FROM person_notice WHERE person_id = $1`, anna)
					return err
				})
				if f, ok := errors.AsType[*fault.Error](err); err != nil && (!ok || f.Code != fault.NotFound) {
					w.Error(err)
				}
			})
			if n := w.count(`SELECT count(*) FROM person_notice`); n != 0 {
				w.Fatalf("%d notices outlived the member", n)
			}
		}
	})
}
