package company_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
)

// fixture is a database with a clock. What a test leaves in it must pass the
// checks.
type fixture struct{ dbtest.Fixture }

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, company.Checks, func(w dbtest.Fixture) { fn(fixture{w}) })
}

func (w fixture) count(query string, args ...any) (n int64) {
	w.Helper()
	w.OK(w.DB.QueryRow(w.Context(), query, args...).Scan(&n))
	return n
}

// refused wants a fault with this code, on this field where there is one.
func (w fixture) refused(err error, code fault.Code, field string) {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code || field != "" && (len(f.Fields) != 1 || f.Fields[0].Path != field) || field == "" && len(f.Fields) != 0 {
		w.Errorf("error = %v, want %s on %q", err, code, field)
		return
	}
	if !strings.HasSuffix(f.Message, ".") {
		w.Errorf("message %q is no sentence", f.Message)
	}
}

func (w fixture) person(email string) string {
	w.Helper()
	id := ids.New()
	w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, $3, TRUE, '', 0)`,
		id, email, strings.ToLower(email))
	return id
}

func (w fixture) company(name string) company.Company {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (company.Company, error) {
		return company.Create(w.Context(), tx, name, company.TeamPlan)
	})
}

func (w fixture) team(companyID, name string) company.Team {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (company.Team, error) { return company.CreateTeam(w.Context(), tx, companyID, name) })
}

func (w fixture) join(companyID, personID, role string) (fresh bool) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return company.SetMember(w.Context(), tx, companyID, personID, role) })
}

func (w fixture) joinTeam(teamID, personID, role string) (fresh bool) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) {
		return company.SetTeamMember(w.Context(), tx, teamID, personID, role, company.Added)
	})
}

func (w fixture) role(companyID, name string, perms ...company.Permission) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) error {
		return company.SetRole(w.Context(), tx, companyID, company.Role{Name: name, Permissions: perms})
	})
}

var badNames = map[string]string{
	"nothing":           "",
	"too long":          strings.Repeat("ü", 101),
	"space before":      " Fox",
	"space after":       "Fox\u00a0",
	"a line break":      "Fox\nHound",
	"a delete":          "Fox\x7f",
	"a C1 control":      "Fox\u0085Hound",
	"bytes, not text":   "Fox\xff",
	"a zero byte":       "Fox\x00",
	"nothing but space": " ",
}

func TestCompany(t *testing.T) {
	each(t, func(w fixture) {
		made := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (company.Company, error) {
			return company.Create(w.Context(), tx, strings.Repeat("ü", 100), company.EnterprisePlan)
		})
		if made.Plan != company.EnterprisePlan || made.Zone != "UTC" || !made.Created.Equal(w.Now()) || !ids.Valid(made.ID) {
			w.Errorf("made %+v", made)
		}
		byID := func(id string) (c company.Company, err error) {
			err = w.Try(func(tx *sqldb.Tx) (err error) { c, err = company.ByID(w.Context(), tx, id); return err })
			return c, err
		}
		if got, err := byID(made.ID); err != nil || got != made {
			w.Errorf("by id = %+v, %v, want %+v", got, err, made)
		}
		rename := func(id, name string) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.Rename(w.Context(), tx, id, name) })
		}
		w.OK(rename(made.ID, "Fox & Sons"))
		if got, _ := byID(made.ID); got.Name != "Fox & Sons" {
			w.Errorf("name = %q after renaming", got.Name)
		}
		setPlan := func(id string, plan company.Plan) error {
			return w.Try(func(tx *sqldb.Tx) error { return company.SetPlan(w.Context(), tx, id, plan) })
		}
		w.OK(setPlan(made.ID, company.TeamPlan))
		w.Exec(`INSERT INTO report_zone (company_id, zone) VALUES ($1, 'Europe/Paris')`, made.ID)
		if got, _ := byID(made.ID); got.Plan != company.TeamPlan || got.Zone != "Europe/Paris" {
			w.Errorf("after changes = %+v", got)
		}
		for what, name := range badNames {
			if err := rename(made.ID, name); err == nil {
				w.Errorf("renamed to %s", what)
			} else {
				w.refused(err, fault.Invalid, "name")
			}
			err := w.Try(func(tx *sqldb.Tx) error {
				_, err := company.Create(w.Context(), tx, name, company.TeamPlan)
				return err
			})
			w.refused(err, fault.Invalid, "name")
		}
		for _, plan := range []company.Plan{"", "team", "PERSONAL"} {
			err := w.Try(func(tx *sqldb.Tx) error { _, err := company.Create(w.Context(), tx, "Fox", plan); return err })
			w.refused(err, fault.Invalid, "plan")
			w.refused(setPlan(made.ID, plan), fault.Invalid, "plan")
		}
		for _, id := range []string{"", ids.New(), "x", "\x00"} {
			_, err := byID(id)
			w.refused(err, fault.NotFound, "")
			w.refused(rename(id, "Fox"), fault.NotFound, "")
			w.refused(setPlan(id, company.TeamPlan), fault.NotFound, "")
		}
	})
}

func TestOfPerson(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		zoo, ark := w.company("Zoo"), w.company("Ark")
		w.company("Other")
		w.join(zoo.ID, anna, company.RoleAdmin)
		w.Pass(time.Hour)
		w.join(ark.ID, anna, company.RoleMember)
		all := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]company.Membership, error) {
			return company.CompanyMemberships(w.Context(), tx, anna)
		})
		if len(all) != 2 || all[0].Company != ark || all[1].Company != zoo || all[0].Role.Name != "member" || all[1].Role.Name != "admin" ||
			!all[0].Joined.Equal(w.Now()) || all[0].Role.May(company.ManageTeams) || !all[1].Role.May(company.ManageTeams) {
			w.Errorf("companies = %+v", all)
		}
		of := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string][]company.Permission, error) {
			return company.PermissionsOf(w.Context(), tx, anna)
		})
		if len(of) != 2 || of[ark.ID] == nil || len(of[ark.ID]) != 0 || len(of[zoo.ID]) != len(company.CompanyPermissions) {
			w.Errorf("permissions = %v", of)
		}
	})
}
