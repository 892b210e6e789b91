package company_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/company"
	"atelier/internal/fault"
	"atelier/internal/ident"
	"atelier/internal/sqldb"
	"atelier/internal/sqldb/dbtest"
)

// world is a database with a clock. What a test leaves in it must pass the
// checks.
type world struct {
	*testing.T
	db    *sqldb.DB
	clock *atomic.Int64 // microseconds
}

func each(t *testing.T, fn func(w world)) {
	t.Helper()
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := world{T: t, clock: new(atomic.Int64)}
			w.clock.Store(time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC).UnixMicro())
			w.db = dbtest.OpenAt(t, dbtest.URL(t, engine), w.now)
			fn(w)
			if v, err := w.db.Verify(t.Context(), company.Checks); err != nil || len(v) != 0 {
				t.Errorf("checks = %v, %v", v, err)
			}
		})
	}
}

func (w world) now() time.Time              { return time.UnixMicro(w.clock.Load()).UTC() }
func (w world) pass(d time.Duration)        { w.clock.Add(d.Microseconds()) }
func (w world) ctx() context.Context        { return w.Context() }
func (w world) do(fn func(*sqldb.Tx) error) { w.Helper(); w.ok(w.try(fn)) }

// try runs fn in a transaction of its own.
func (w world) try(fn func(*sqldb.Tx) error) error { return w.db.Write(w.Context(), fn) }

func (w world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// exec changes the database behind the package's back.
func (w world) exec(query string, args ...any) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) error { _, err := tx.Exec(w.ctx(), query, args...); return err })
}

func (w world) count(query string, args ...any) (n int64) {
	w.Helper()
	w.ok(w.db.QueryRow(w.ctx(), query, args...).Scan(&n))
	return n
}

// get gives the result of one transaction.
func get[T any](w world, fn func(*sqldb.Tx) (T, error)) (v T) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) { v, err = fn(tx); return err })
	return v
}

// refused wants a fault with this code, on this field where there is one.
func (w world) refused(err error, code fault.Code, field string) {
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

func (w world) person(email string) string {
	w.Helper()
	id := ident.New()
	w.exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, $3, TRUE, '', 0)`,
		id, email, strings.ToLower(email))
	return id
}

func (w world) company(name string) company.Company {
	w.Helper()
	return get(w, func(tx *sqldb.Tx) (company.Company, error) {
		return company.Create(w.ctx(), tx, name, company.TeamPlan)
	})
}

func (w world) team(companyID, name string) company.Team {
	w.Helper()
	return get(w, func(tx *sqldb.Tx) (company.Team, error) { return company.CreateTeam(w.ctx(), tx, companyID, name) })
}

func (w world) join(companyID, personID, role string) (fresh bool) {
	w.Helper()
	return get(w, func(tx *sqldb.Tx) (bool, error) { return company.SetMember(w.ctx(), tx, companyID, personID, role) })
}

func (w world) joinTeam(teamID, personID, role string) (fresh bool) {
	w.Helper()
	return get(w, func(tx *sqldb.Tx) (bool, error) {
		return company.SetTeamMember(w.ctx(), tx, teamID, personID, role, company.Added)
	})
}

func (w world) role(companyID, name string, perms ...company.Permission) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) error {
		return company.SetRole(w.ctx(), tx, companyID, company.Role{Name: name, Permissions: perms})
	})
}

// together runs n functions at once and waits for all.
func together(n int, fn func(i int)) {
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			<-start
			fn(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
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
	each(t, func(w world) {
		made := get(w, func(tx *sqldb.Tx) (company.Company, error) {
			return company.Create(w.ctx(), tx, strings.Repeat("ü", 100), company.EnterprisePlan)
		})
		if made.Plan != company.EnterprisePlan || !made.Created.Equal(w.now()) || !ident.Valid(made.ID) {
			w.Errorf("made %+v", made)
		}
		byID := func(id string) (c company.Company, err error) {
			err = w.try(func(tx *sqldb.Tx) (err error) { c, err = company.ByID(w.ctx(), tx, id); return err })
			return c, err
		}
		if got, err := byID(made.ID); err != nil || got != made {
			w.Errorf("by id = %+v, %v, want %+v", got, err, made)
		}
		rename := func(id, name string) error {
			return w.try(func(tx *sqldb.Tx) error { return company.Rename(w.ctx(), tx, id, name) })
		}
		w.ok(rename(made.ID, "Fox & Sons"))
		if got, _ := byID(made.ID); got.Name != "Fox & Sons" {
			w.Errorf("name = %q after renaming", got.Name)
		}
		for what, name := range badNames {
			if err := rename(made.ID, name); err == nil {
				w.Errorf("renamed to %s", what)
			} else {
				w.refused(err, fault.Invalid, "name")
			}
			err := w.try(func(tx *sqldb.Tx) error { _, err := company.Create(w.ctx(), tx, name, company.TeamPlan); return err })
			w.refused(err, fault.Invalid, "name")
		}
		for _, plan := range []company.Plan{"", "team", "PERSONAL"} {
			err := w.try(func(tx *sqldb.Tx) error { _, err := company.Create(w.ctx(), tx, "Fox", plan); return err })
			w.refused(err, fault.Invalid, "plan")
		}
		for _, id := range []string{"", ident.New(), "x", "\x00"} {
			_, err := byID(id)
			w.refused(err, fault.NotFound, "")
			w.refused(rename(id, "Fox"), fault.NotFound, "")
		}
	})
}

func TestListPagesThroughEveryCompanyOnce(t *testing.T) {
	each(t, func(w world) {
		want := []string{"a", "b", "b", "b", "c"}
		for _, name := range []string{"b", "c", "b", "a", "b"} {
			w.company(name)
		}
		var names []string
		ids := map[string]bool{}
		for after := (company.Key{}); ; {
			page := get(w, func(tx *sqldb.Tx) ([]company.Company, error) { return company.List(w.ctx(), tx, after, 2) })
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				names, ids[c.ID], after = append(names, c.Name), true, c.Key()
			}
		}
		if !slices.Equal(names, want) || len(ids) != len(want) {
			w.Errorf("pages = %v with %d ids, want %v", names, len(ids), want)
		}
	})
}

func TestOfPerson(t *testing.T) {
	each(t, func(w world) {
		anna := w.person("anna@example.com")
		zoo, ark := w.company("Zoo"), w.company("Ark")
		w.company("Other")
		w.join(zoo.ID, anna, company.RoleAdmin)
		w.pass(time.Hour)
		w.join(ark.ID, anna, company.RoleMember)
		all := get(w, func(tx *sqldb.Tx) ([]company.Membership, error) { return company.OfPerson(w.ctx(), tx, anna) })
		if len(all) != 2 || all[0].Company != ark || all[1].Company != zoo || all[0].Role.Name != "member" || all[1].Role.Name != "admin" ||
			!all[0].Joined.Equal(w.now()) || all[0].Role.May(company.ManageTeams) || !all[1].Role.May(company.ManageTeams) {
			w.Errorf("companies = %+v", all)
		}
		of := get(w, func(tx *sqldb.Tx) (map[string][]company.Permission, error) {
			return company.PermissionsOf(w.ctx(), tx, anna)
		})
		if len(of) != 2 || of[ark.ID] == nil || len(of[ark.ID]) != 0 || len(of[zoo.ID]) != len(company.CompanyPermissions) {
			w.Errorf("permissions = %v", of)
		}
	})
}
