package companyadmin_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account/companyadmin"
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

// operator is the principal of the admin commands.
var operator = principal.Operator()

// fixture has the services on a database with a clock. The database must pass the
// checks at the end of each test.
type fixture struct {
	*testing.T
	db        *sqldb.DB
	parts     companyadmin.Parts
	companies *companyadmin.Services
	box       keyring.Box
	clock     *atomic.Int64 // microseconds
}

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(open(t, engine))
		})
	}
}

func open(t *testing.T, engine string) fixture {
	t.Helper()
	w := fixture{T: t, clock: new(atomic.Int64)}
	w.clock.Store(time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC).UnixMicro())
	now := func() time.Time { return time.UnixMicro(w.clock.Load()).UTC() }
	w.db = dbtest.OpenAt(t, dbtest.URL(t, engine), now)
	ring, err := keyring.New(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)))
	w.ok(err)
	w.box = ring.BoxFor("mail")
	q, err := queue.Open(w.db, queue.Options{Now: now})
	w.ok(err)
	office := mailqueue.Outbox{Queue: q, Box: w.box}
	budgets := &budget.Service{Post: office, Guard: webhook.NewGuard(nil), Wake: func() {}, AppURL: appURL}
	w.parts = companyadmin.Parts{DB: w.db, Mail: office, AppURL: appURL, Budgets: budgets}
	w.companies = companyadmin.New(w.parts)
	t.Cleanup(func() {
		checks := slices.Concat(budget.Checks, company.Checks, credential.Checks, audit.Checks)
		if v, err := w.db.VerifyChecks(context.Background(), checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
	return w
}

// useResolver makes the services look up domains with another resolver from now
// on.
func (w fixture) useResolver(r *net.Resolver) {
	w.parts.Resolver = r
	w.companies.Domains = companyadmin.New(w.parts).Domains
}

func (w fixture) ctx() context.Context { return w.Context() }

func (w fixture) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// get returns the result of a transaction that does not use the services.
func get[T any](w fixture, fn func(*sqldb.Tx) (T, error)) (v T) {
	w.Helper()
	w.ok(w.db.Write(w.ctx(), func(tx *sqldb.Tx) (err error) { v, err = fn(tx); return err }))
	return v
}

// refused requires a fault with this code: with the reason about if it is a
// matter of permission, and on the field about if the request is invalid.
func (w fixture) refused(err error, code fault.Code, about string) {
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

// person creates a person who acts through an app.
func (w fixture) person(email string) principal.Principal {
	w.Helper()
	p := get(w, func(tx *sqldb.Tx) (person.Person, error) {
		return person.Create(w.ctx(), tx, person.Draft{Email: email, EmailVerified: true, PasswordHash: "x"})
	})
	return principal.Principal{PersonID: p.ID, Credential: principal.Credential{Kind: principal.IDToken}, Plugin: "blender", Address: "203.0.113.7"}
}

// fresh creates a person that no other part of the test uses.
func (w fixture) fresh() principal.Principal {
	return w.person(strings.ToLower(ids.New()) + "@example.com")
}

func (w fixture) company(name string) string {
	w.Helper()
	c, err := w.companies.CreateCompany(w.ctx(), operator, name, company.TeamPlan)
	w.ok(err)
	return c.ID
}

func (w fixture) team(companyID string) string {
	w.Helper()
	t, err := w.companies.Teams.CreateTeam(w.ctx(), operator, companyID, "Film")
	w.ok(err)
	return t.ID
}

// role assigns a person exactly these permissions in a company.
func (w fixture) role(companyID string, a principal.Principal, perms ...company.Permission) principal.Principal {
	w.Helper()
	get(w, func(tx *sqldb.Tx) (bool, error) {
		role, err := company.EnsureRole(w.ctx(), tx, companyID, perms)
		if err != nil {
			return false, err
		}
		return company.SetMember(w.ctx(), tx, companyID, a.PersonID, role)
	})
	return a
}

// teamRole assigns a person a role in a team with exactly these permissions.
func (w fixture) teamRole(teamID string, a principal.Principal, name string, perms ...company.Permission) principal.Principal {
	w.Helper()
	w.makeTeamRole(teamID, name, perms...)
	w.joinTeam(teamID, a, name)
	return a
}

func (w fixture) makeTeamRole(teamID, name string, perms ...company.Permission) {
	w.Helper()
	_, err := w.companies.TeamRoles.SetTeamRole(w.ctx(), operator, teamID, company.TeamRole{Name: name, Permissions: perms, PluginKinds: []string{"*"}})
	w.ok(err)
}

func (w fixture) joinTeam(teamID string, a principal.Principal, role string) {
	w.Helper()
	_, err := w.companies.TeamMembers.SetTeamMember(w.ctx(), operator, teamID, a.PersonID, role)
	w.ok(err)
}

// log returns the records after a record, oldest first.
func (w fixture) log(since int64) []audit.Record {
	w.Helper()
	all := get(w, func(tx *sqldb.Tx) ([]audit.Record, error) { return audit.List(w.ctx(), tx, audit.Filter{Limit: 1000}) })
	all = slices.DeleteFunc(all, func(r audit.Record) bool { return r.Seq <= since })
	slices.Reverse(all)
	return all
}

// seq returns the number of the newest record.
func (w fixture) seq() (n int64) {
	w.Helper()
	w.ok(w.db.QueryRow(w.ctx(), `SELECT coalesce(max(seq), 0) FROM audit`).Scan(&n))
	return n
}

// mails returns the messages in the queue, oldest first.
func (w fixture) mails() []mail.Message {
	w.Helper()
	return mailqueuetest.Queued(w, w.db, w.box)
}
