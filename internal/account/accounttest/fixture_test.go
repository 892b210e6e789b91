package accounttest_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/queue"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
	"atelier/internal/money/ledger"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue/mailqueuetest"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/web/access"
)

// password is the password of every person who has one.
const password = accounttest.Password

// unfit is a wrong password that costs no time: it is too long to be hashed.
var unfit = strings.Repeat("x", 1025)

// fixture is an installation with its own clock. After a test its data must pass
// all checks.
type fixture struct {
	*testing.T
	*accounttest.Site
	address string // of the database
	start   func() time.Time
	passed  atomic.Int64
}

// each runs fn in a new fixture on every database. The clock of a fixture moves
// only if the test moves it.
func each(t *testing.T, o accounttest.Options, fn func(w *fixture)) {
	t.Helper()
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			start := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
			w := open(t, engine, o, func() time.Time { return start })
			fn(w)
			w.sound()
		})
	}
}

// open builds a fixture whose clock is start plus the time that the test has
// added.
func open(t *testing.T, engine string, o accounttest.Options, start func() time.Time) *fixture {
	t.Helper()
	w := &fixture{T: t, address: dbtest.URL(t, engine), start: start}
	o.Now = w.now
	w.Site = accounttest.New(t, dbtest.OpenAt(t, w.address, w.now), o)
	return w
}

func (w *fixture) now() time.Time       { return w.start().Add(time.Duration(w.passed.Load())) }
func (w *fixture) pass(d time.Duration) { w.passed.Add(int64(d)) }

// sound checks the invariants of every package and the integrity of the audit
// log.
func (w *fixture) sound() {
	w.Helper()
	bad, err := w.DB.VerifyChecks(w.Context(), slices.Concat(person.Checks, session.Checks, company.Checks, credential.Checks, device.Checks,
		idtoken.Checks, audit.Checks, ledger.Checks, ratelimit.Checks, catalog.Checks, queue.Checks(w.DB.Dialect)))
	if err != nil || len(bad) != 0 {
		w.Errorf("checks = %v, %v", bad, err)
	}
	if _, bad, err := audit.Verify(w.Context(), w.DB, nil); err != nil || len(bad) != 0 {
		w.Errorf("audit log = %q, %v", bad, err)
	}
}

func (w *fixture) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refused requires a fault with this code and a message for people.
func (w *fixture) refused(what string, err error, code fault.Code) {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code || !strings.HasSuffix(f.Message, ".") {
		w.Errorf("%s = %v, want %s with a sentence", what, err, code)
	}
}

// because requires a fault.Forbidden with this reason.
func (w *fixture) because(what string, err error, reason string) {
	w.Helper()
	w.refused(what, err, fault.Forbidden)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Details["reason"] != reason {
		w.Errorf("%s: reason = %v, want %s", what, f.Details["reason"], reason)
	}
}

// wait returns the wait that a rate limit imposes.
func (w *fixture) wait(what string, err error) time.Duration {
	w.Helper()
	w.refused(what, err, fault.RateLimited)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.RetryAfter
	}
	return 0
}

func (w *fixture) do(fn func(tx *sqldb.Tx) error) { w.Helper(); w.ok(w.DB.Write(w.Context(), fn)) }

// count returns the number of rows of a table.
func (w *fixture) count(from string, args ...any) (n int) {
	w.Helper()
	w.ok(w.DB.QueryRow(w.Context(), `SELECT count(*) FROM `+from, args...).Scan(&n))
	return n
}

// somebody creates a person whose password hash matches no password.
func (w *fixture) somebody(email string, verified bool) person.Person {
	w.Helper()
	return w.create(person.Draft{Email: email, EmailVerified: verified, PasswordHash: "x"})
}

func (w *fixture) create(d person.Draft) (p person.Person) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) { p, err = person.Create(w.Context(), tx, d); return err })
	return p
}

func (w *fixture) byID(id string) (p person.Person) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) { p, err = person.ByID(w.Context(), tx, id); return err })
	return p
}

// browser signs a browser in without a password.
func (w *fixture) browser(personID string) (s signin.Session, cookie string) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) {
		s.Session, cookie, err = session.Start(w.Context(), tx, session.Session{PersonID: personID, Provider: person.Password}, 24*time.Hour)
		return err
	})
	s.Person = w.byID(personID)
	return s, cookie
}

// knows reports whether a person is signed in with the cookie.
func (w *fixture) knows(cookie string) bool {
	w.Helper()
	_, err := w.Accounts.SignIn.FindSession(w.Context(), cookie, "10.0.0.1")
	if err != nil && !signin.IsSignedOut(err) {
		w.Errorf("session = %v", err)
	}
	return err == nil
}

// admits reports whether a request with this token is admitted.
func (w *fixture) admits(token string) bool {
	w.Helper()
	_, err := w.Gate.Admit(w.Context(), access.Identity, access.Presented{Authorization: []string{"Bearer " + token}})
	if err != nil {
		w.refused("admit", err, fault.Unauthenticated)
	}
	return err == nil
}

// approved returns the codes of a device that a person has approved and that
// has not polled yet.
func (w *fixture) approved(in signin.Session) device.Codes {
	w.Helper()
	codes := w.Start("blender")
	w.ok(w.Decide(in, codes, true))
	return codes
}

func (w *fixture) poll(codes device.Codes) (devicelogin.Login, error) {
	return w.Accounts.Devices.Poll(w.Context(), codes.DeviceCode, w.Client())
}

func (w *fixture) refresh(token string) (devicelogin.Tokens, error) {
	return w.Accounts.Devices.RefreshTokens(w.Context(), token, w.Client())
}

// signUp signs up with the common password.
func (w *fixture) signUp(a signup.Application) (signin.NewSession, error) {
	if a.Password == "" {
		a.Password = password
	}
	if a.Client == (session.Client{}) {
		a.Client = w.Client()
	}
	return w.Accounts.SignUp.SignUp(w.Context(), a)
}

// invite creates an invitation into a team, for an e-mail address or, with "", for
// any holder of the link, and returns its secret.
func (w *fixture) invite(email, companyID, teamID string) (secret string) {
	w.Helper()
	_, link, err := w.Companies.Invitations.CreateInvitation(w.Context(), principal.Operator(), company.Draft{CompanyID: companyID, TeamID: teamID, Email: email})
	w.ok(err)
	if email != "" {
		return w.secret(email, "You are invited")
	}
	return secretIn(link)
}

// mails returns all messages sent so far, oldest first.
func (w *fixture) mails() []mail.Message {
	w.Helper()
	return mailqueuetest.Queued(w, w.DB, w.Keys.BoxFor("mail"))
}

// mailsTo returns the messages to an address whose subject begins with subject.
func (w *fixture) mailsTo(email, subject string) []mail.Message {
	w.Helper()
	return slices.DeleteFunc(w.mails(), func(m mail.Message) bool { return m.To != email || !strings.HasPrefix(m.Subject, subject) })
}

// secret returns the secret of the link in the newest such message.
func (w *fixture) secret(email, subject string) string {
	w.Helper()
	all := w.mailsTo(email, subject)
	if len(all) == 0 {
		w.Fatalf("no mail %q to %s", subject, email)
	}
	return secretIn(all[len(all)-1].Text)
}

var inLink = regexp.MustCompile(`[?&]token=([A-Za-z0-9]+)`)

// secretIn returns the secret of a link.
func secretIn(text string) string {
	if m := inLink.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// notices returns a person's notices, newest first.
func (w *fixture) notices(personID string) (all []person.Notice) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) { all, err = person.Notices(w.Context(), tx, personID, 100); return err })
	return all
}

// records returns the audit log after a position, oldest first.
func (w *fixture) records(after int64) (all []audit.Record) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) {
		all, err = audit.List(w.Context(), tx, audit.Filter{Limit: 10_000})
		return err
	})
	slices.Reverse(all)
	return slices.DeleteFunc(all, func(r audit.Record) bool { return r.Seq <= after })
}

// mark returns the current end of the audit log.
func (w *fixture) mark() int64 {
	w.Helper()
	return int64(w.count(`audit`))
}

// recorded requires exactly these actions in the audit log since the mark.
func (w *fixture) recorded(what string, mark int64, want ...audit.Act) {
	w.Helper()
	var got []audit.Act
	for _, r := range w.records(mark) {
		got = append(got, r.Act)
	}
	if !slices.Equal(got, want) {
		w.Errorf("%s: audit log has %q, want %q", what, got, want)
	}
}

// times counts the entries of an action in the audit log.
func (w *fixture) times(act audit.Act) int {
	w.Helper()
	return w.count(`audit WHERE act = $1`, string(act))
}
