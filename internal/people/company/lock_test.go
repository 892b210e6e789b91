package company_test

import (
	"errors"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
)

// overlap runs second while first has done its work and not committed it, and
// lets first commit once second has ended or waits for a lock.
func (w fixture) overlap(first, second func(*sqldb.Tx) error) (errFirst, errSecond error) {
	w.Helper()
	done := make(chan struct{})
	begun := false
	errFirst = w.Try(func(tx *sqldb.Tx) error {
		if err := first(tx); err != nil || begun {
			return err
		}
		begun = true
		go func() {
			defer close(done)
			errSecond = w.Try(second)
		}()
		for w.DB.Dialect.Name == "postgres" { // on SQLite second waits for its turn
			select {
			case <-done:
				return nil
			default:
			}
			if w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
				return nil
			}
		}
		return nil
	})
	if begun {
		<-done
	}
	return errFirst, errSecond
}

// Whatever is made in a company while something else is taken away, in
// whichever order: each sees what the other did or is refused, and the checks
// find nothing.
func TestOverlappingChangesSeeEachOther(t *testing.T) {
	type act = func(tx *sqldb.Tx) error
	each(t, func(w fixture) {
		// setting is a company with everything the acts need.
		type setting struct {
			company      company.Company
			team         company.Team
			anna, secret string
		}
		making := map[string]func(s setting) act{
			"add a member to the team": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					_, err := company.SetTeamMember(w.Context(), tx, s.team.ID, s.anna, "manager", company.Added)
					return err
				}
			},
			"accept an invitation": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					_, _, err := company.AcceptSecret(w.Context(), tx, s.secret, s.anna, "")
					return err
				}
			},
			"join by domain": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					_, _, err := company.JoinByDomain(w.Context(), tx, s.anna, "anna@fox.example")
					return err
				}
			},
			"join all by domain": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					_, err := company.JoinAllByDomain(w.Context(), tx, s.company.ID, "fox.example")
					return err
				}
			},
			"invite": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					_, _, err := company.Invite(w.Context(), tx, company.Draft{CompanyID: s.company.ID, CompanyRole: "keeper", TeamID: s.team.ID, TeamRole: "manager", Lifetime: time.Hour})
					return err
				}
			},
			"add a domain": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					_, err := company.AddDomain(w.Context(), tx, s.company.ID, "new.example", s.team.ID, "manager")
					return err
				}
			},
			"set a role": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					return company.SetTeamRole(w.Context(), tx, s.team.ID, company.TeamRole{Name: "manager"})
				}
			},
		}
		taking := map[string]func(s setting) act{
			"remove the team": func(s setting) act {
				return func(tx *sqldb.Tx) error { return company.RemoveTeam(w.Context(), tx, s.team.ID) }
			},
			"delete a role": func(s setting) act {
				return func(tx *sqldb.Tx) error { return company.DeleteRole(w.Context(), tx, s.company.ID, "keeper") }
			},
			"delete a team role": func(s setting) act {
				return func(tx *sqldb.Tx) error { return company.DeleteTeamRole(w.Context(), tx, s.team.ID, "manager") }
			},
			"remove the member": func(s setting) act {
				return func(tx *sqldb.Tx) error {
					_, err := company.RemoveMember(w.Context(), tx, s.company.ID, s.anna)
					return err
				}
			},
		}
		for one, make := range making {
			for other, take := range taking {
				for _, pair := range [][2]func(s setting) act{{make, take}, {take, make}} {
					s := setting{company: w.company("Fox"), anna: w.person(ids.New() + "@fox.example")}
					s.team = w.team(s.company.ID, "Film")
					w.role(s.company.ID, "keeper")
					w.join(s.company.ID, s.anna, "member")
					_, s.secret = w.invite(company.Draft{CompanyID: s.company.ID, TeamID: s.team.ID, Lifetime: time.Hour})
					w.verified(s.company.ID, "fox.example", s.team.ID, "")
					errFirst, errSecond := w.overlap(pair[0](s), pair[1](s))
					for _, err := range []error{errFirst, errSecond} {
						if _, ok := errors.AsType[*fault.Error](err); err != nil && !ok {
							w.Errorf("%s and %s: %v", one, other, err)
						}
					}
					if v, err := w.DB.VerifyChecks(w.Context(), company.Checks); err != nil || len(v) != 0 {
						w.Fatalf("%s and %s: checks = %v, %v", one, other, v, err)
					}
					w.Do(func(tx *sqldb.Tx) error { return company.RemoveDomain(w.Context(), tx, s.company.ID, "fox.example") })
				}
			}
		}
	})
}
