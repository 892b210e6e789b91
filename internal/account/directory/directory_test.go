package directory_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account/directory"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/budget"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/notify/mailqueue/mailqueuetest"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

const appURL = "https://atelier.example"

// operator is who the admin command acts for.
var operator = principal.Operator()

// world is a directory on a database with a clock. What a test leaves in it
// must pass the checks.
type world struct {
	*testing.T
	db    *sqldb.DB
	dir   *directory.Directory
	box   keyring.Box
	clock *atomic.Int64 // microseconds
}

func each(t *testing.T, fn func(w world)) {
	t.Helper()
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(open(t, engine))
		})
	}
}

func open(t *testing.T, engine string) world {
	t.Helper()
	w := world{T: t, clock: new(atomic.Int64)}
	w.clock.Store(time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC).UnixMicro())
	now := func() time.Time { return time.UnixMicro(w.clock.Load()).UTC() }
	w.db = dbtest.OpenAt(t, dbtest.URL(t, engine), now)
	ring, err := keyring.New(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)))
	w.ok(err)
	w.box = ring.Box("mail")
	q, err := queue.Open(w.db, nil, queue.Options{Now: now})
	w.ok(err)
	office := mailqueue.Office{Queue: q, Box: w.box}
	budgets := &budget.Keeper{Post: office, Guard: webhook.NewGuard(nil), Wake: func() {}, AppURL: appURL}
	w.dir = &directory.Directory{DB: w.db, Post: office, AppURL: appURL, Budgets: budgets}
	t.Cleanup(func() {
		checks := slices.Concat(budget.Checks, company.Checks, credential.Checks, audit.Checks)
		if v, err := w.db.Verify(context.Background(), checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
	return w
}

func (w world) ctx() context.Context { return w.Context() }

func (w world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// get gives the result of one transaction behind the directory's back.
func get[T any](w world, fn func(*sqldb.Tx) (T, error)) (v T) {
	w.Helper()
	w.ok(w.db.Write(w.ctx(), func(tx *sqldb.Tx) (err error) { v, err = fn(tx); return err }))
	return v
}

// refused wants a fault with this code: with that reason where it is a matter
// of permission, and on that field where it is an invalid request.
func (w world) refused(err error, code fault.Code, about string) {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		w.Errorf("error = %v, want %s", err, code)
		return
	}
	if reason, _ := f.Details["reason"].(string); code == fault.Forbidden && reason != about {
		w.Errorf("reason = %q, want %q", reason, about)
	}
	if code == fault.Invalid && (len(f.Fields) != 1 || f.Fields[0].Path != about) {
		w.Errorf("fields = %v, want one on %q", f.Fields, about)
	}
	if !strings.HasSuffix(f.Message, ".") {
		w.Errorf("message %q is no sentence", f.Message)
	}
}

// person makes somebody, who acts through an app.
func (w world) person(email string) principal.Principal {
	w.Helper()
	p := get(w, func(tx *sqldb.Tx) (person.Person, error) {
		return person.Create(w.ctx(), tx, person.Draft{Email: email, EmailVerified: true, PasswordHash: "x"})
	})
	return principal.Principal{PersonID: p.ID, Credential: principal.Credential{Kind: principal.IDToken}, Plugin: "blender", Address: "203.0.113.7"}
}

// fresh makes somebody whom no other part of the test knows.
func (w world) fresh() principal.Principal {
	return w.person(strings.ToLower(ids.New()) + "@example.com")
}

func (w world) company(name string) string {
	w.Helper()
	c, err := w.dir.CreateCompany(w.ctx(), operator, name, company.TeamPlan)
	w.ok(err)
	return c.ID
}

func (w world) team(companyID string) string {
	w.Helper()
	t, err := w.dir.CreateTeam(w.ctx(), operator, companyID, "Film")
	w.ok(err)
	return t.ID
}

// role gives somebody exactly these permissions in a company.
func (w world) role(companyID string, a principal.Principal, perms ...company.Permission) principal.Principal {
	w.Helper()
	get(w, func(tx *sqldb.Tx) (bool, error) {
		role, err := company.RoleWith(w.ctx(), tx, companyID, perms)
		if err != nil {
			return false, err
		}
		return company.SetMember(w.ctx(), tx, companyID, a.PersonID, role)
	})
	return a
}

// teamRole gives somebody a role in a team that allows exactly these.
func (w world) teamRole(teamID string, a principal.Principal, name string, perms ...company.Permission) principal.Principal {
	w.Helper()
	w.makeTeamRole(teamID, name, perms...)
	w.joinTeam(teamID, a, name)
	return a
}

func (w world) makeTeamRole(teamID, name string, perms ...company.Permission) {
	w.Helper()
	_, err := w.dir.SetTeamRole(w.ctx(), operator, teamID, company.TeamRole{Name: name, Permissions: perms, PluginKinds: []string{"*"}})
	w.ok(err)
}

func (w world) joinTeam(teamID string, a principal.Principal, role string) {
	w.Helper()
	_, err := w.dir.SetTeamMember(w.ctx(), operator, teamID, a.PersonID, role)
	w.ok(err)
}

// log gives what was recorded since a record, oldest first.
func (w world) log(since int64) []audit.Record {
	w.Helper()
	all := get(w, func(tx *sqldb.Tx) ([]audit.Record, error) { return audit.List(w.ctx(), tx, audit.Filter{Limit: 1000}) })
	all = slices.DeleteFunc(all, func(r audit.Record) bool { return r.Seq <= since })
	slices.Reverse(all)
	return all
}

// seq is the number of the newest record.
func (w world) seq() (n int64) {
	w.Helper()
	w.ok(w.db.QueryRow(w.ctx(), `SELECT coalesce(max(seq), 0) FROM audit`).Scan(&n))
	return n
}

// mails reads what lies in the queue, oldest first.
func (w world) mails() []mail.Message {
	w.Helper()
	return mailqueuetest.Queued(w, w.db, w.box)
}
