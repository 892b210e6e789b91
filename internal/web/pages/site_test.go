package pages_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/account"
	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/personaldata"
	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/oidc"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/httpd"
	"atelier/internal/web/pages"
	"atelier/internal/web/studio"
	"atelier/web"
)

// clock is a clock that tests move.
type clock struct{ micros atomic.Int64 }

func (c *clock) now() time.Time       { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.micros.Add(d.Microseconds()) }

// site is a complete service with its pages.
type site struct {
	t        *testing.T
	db       *sqldb.DB
	accounts *account.Services
	clock    *clock
	url      string
	log      *watch.Log
	box      keyring.Box // seals mail
	key      []byte      // authenticates CSRF tokens

	metrics *prometheus.Registry
}

// each runs a test against a site on each database.
func each(t *testing.T, change func(*account.Settings), fn func(t *testing.T, s *site)) {
	t.Helper()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(t, build(t, engine, change, nil))
		})
	}
}

// build starts a site. The function provider returns the OpenID provider for a
// site with this URL.
func build(t *testing.T, engine string, change func(*account.Settings), provider func(appURL string) *oidc.Provider) *site {
	t.Helper()
	s := &site{t: t, clock: &clock{}, log: &watch.Log{}, metrics: prometheus.NewRegistry()}
	s.clock.micros.Store(time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC).UnixMicro())
	server := httptest.NewUnstartedServer(nil)
	s.url = "http://" + server.Listener.Addr().String()
	settings := account.Settings{AppURL: s.url, SignupGrant: 1234567, MonthlyAllowance: 100}
	if change != nil {
		change(&settings)
	}
	var from *oidc.Provider
	if provider != nil {
		s.clock.micros.Store(time.Now().UnixMicro()) // the provider's tokens have the real time
		from = provider(s.url)
	}
	s.db = dbtest.OpenAt(t, dbtest.URL(t, engine), s.clock.now)
	parts := accounttest.New(t, s.db, accounttest.Options{Settings: settings, Provider: from, Now: s.clock.now})
	s.accounts, s.box = parts.Accounts, parts.Keys.BoxFor("mail")
	s.key = parts.Keys.DeriveKey("form")
	blobs, err := blob.Open(t.Context(), "file://"+t.TempDir(), blob.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	pages, err := pages.New(pages.Parts{
		Studio: newStudio(t, s.url), Accounts: s.accounts, PersonalData: &personaldata.Service{DB: s.db, Blobs: blobs, Queue: parts.Queue}, Provider: from, Box: parts.Keys.BoxFor("pending"), Key: s.key,
		AppURL: s.url, BaseURL: "https://api.atelier.example", HasOAuth: true, Now: s.clock.now, WallClock: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = s.served(pages)
	server.Start()
	t.Cleanup(server.Close)
	return s
}

// newStudio returns the built studio for a site with this URL.
func newStudio(t *testing.T, appURL string) *studio.Site {
	t.Helper()
	site, err := studio.New(studio.Options{Files: web.Dist(), AppURL: appURL, MediaURL: appURL})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// served wraps pages in the same handlers as the program does.
func (s *site) served(pages http.Handler) http.Handler {
	return httpd.New(pages, httpd.Options{
		Log: slog.New(slog.NewTextHandler(s.log, nil)), Metrics: s.metrics, Now: s.clock.now,
		Health: &httpd.Health{Now: s.clock.now}, DatabaseBudget: time.Minute,
	})
}

// write runs do in a transaction.
func (s *site) write(do func(ctx context.Context, tx *sqldb.Tx) error) {
	s.t.Helper()
	if err := s.db.Write(s.t.Context(), func(tx *sqldb.Tx) error { return do(s.t.Context(), tx) }); err != nil {
		s.t.Fatal(err)
	}
}

// count returns the number that a query counts.
func (s *site) count(query string, args ...any) (n int64) {
	s.t.Helper()
	if err := s.db.QueryRow(s.t.Context(), "SELECT count(*) FROM "+query, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// state returns the stored data about people as text.
func (s *site) state() string {
	s.t.Helper()
	var all []string
	s.write(func(ctx context.Context, tx *sqldb.Tx) error {
		all = all[:0]
		for _, query := range []string{
			`SELECT 'person ' || id || ' ' || password_hash || CASE WHEN email_verified THEN ' verified' ELSE '' END FROM person`,
			`SELECT 'link ' || hash FROM person_link`,
			`SELECT 'session ' || id FROM web_session`,
			`SELECT 'device ' || id || CASE WHEN revoked IS NULL THEN '' ELSE ' revoked' END FROM device`,
			`SELECT 'grant ' || id || ' ' || state FROM device_grant`,
			`SELECT 'token ' || id || ' ' || hash FROM access_token`,
			`SELECT 'member ' || company_id || ' ' || person_id || ' ' || role FROM company_member`,
			`SELECT 'team member ' || team_id || ' ' || person_id || ' ' || role FROM team_member`,
			`SELECT 'invitation ' || id || ' ' || CAST(uses_left AS TEXT) FROM invitation`,
			`SELECT 'notice ' || id FROM person_notice`,
			`SELECT 'audit ' || hash FROM audit`,
		} {
			rows, err := sqldb.All(ctx, tx, query+" ORDER BY 1", nil, func(row sqldb.Scanner) (line string, err error) { return line, row.Scan(&line) })
			if err != nil {
				return err
			}
			all = append(all, rows...)
		}
		return nil
	})
	return strings.Join(all, "\n")
}

const password = accounttest.Password

// person creates a person with the common password.
func (s *site) person(email string) (p person.Person) {
	s.t.Helper()
	s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
		p, err = person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: true, PasswordHash: accounttest.PasswordHash})
		return err
	})
	return p
}

// company creates a company with a team, and a person who is a member of both.
func (s *site) company(name, team, role string, p person.Person) (c company.Company, tm company.Team) {
	s.t.Helper()
	s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
		if c, err = company.Create(ctx, tx, name, company.EnterprisePlan); err != nil {
			return err
		}
		if tm, err = company.CreateTeam(ctx, tx, c.ID, team); err != nil {
			return err
		}
		if _, err = company.SetMember(ctx, tx, c.ID, p.ID, role); err != nil {
			return err
		}
		_, err = company.SetTeamMember(ctx, tx, tm.ID, p.ID, company.RoleMember, company.Added)
		return err
	})
	return c, tm
}

// mails returns the mail that the site has sent so far.
func (s *site) mails() string {
	s.t.Helper()
	var out watch.Log
	h := mailqueue.Handler(mail.Print(&out), s.box, slog.New(slog.DiscardHandler))
	query := `SELECT args FROM job WHERE kind = 'mail' ORDER BY created, rowid`
	if s.db.Dialect.Name == "postgres" {
		query = `SELECT args->>'args' FROM river_job WHERE kind = 'mail' ORDER BY id`
	}
	s.write(func(ctx context.Context, tx *sqldb.Tx) error {
		all, err := sqldb.All(ctx, tx, query, nil, func(row sqldb.Scanner) (args string, err error) { return args, row.Scan(&args) })
		for _, args := range all {
			if err := h.Do(ctx, queue.Work{Args: []byte(args)}); err != nil {
				return err
			}
		}
		return err
	})
	return out.String()
}

// link finds the newest link to a page in the mails.
func (s *site) link(path string) string {
	s.t.Helper()
	all := regexp.MustCompile(regexp.QuoteMeta(s.url)+`(`+path+`\?\S+)`).FindAllStringSubmatch(s.mails(), -1)
	if len(all) == 0 {
		s.t.Fatalf("no link to %s in %s", path, s.mails())
	}
	return all[len(all)-1][1]
}

// start begins the sign-in of a device.
func (s *site) start(kind, agent, address string) device.Codes {
	s.t.Helper()
	codes, err := s.accounts.Devices.Start(s.t.Context(), kind, session.Client{UserAgent: agent, Address: address})
	if err != nil {
		s.t.Fatal(err)
	}
	return codes
}

// poll requests a device's tokens.
func (s *site) poll(codes device.Codes) (devicelogin.Login, error) {
	s.clock.pass(time.Minute)
	return s.accounts.Devices.Poll(s.t.Context(), codes.DeviceCode, session.Client{UserAgent: "blender/4.5", Address: "198.51.100.7"})
}

// device signs a device in as the person.
func (s *site) device(p person.Person, b *browser, kind, agent string) string {
	s.t.Helper()
	codes := s.start(kind, agent, "198.51.100.7")
	b.submit("/device?code="+codes.UserCode, "/device", "verdict", "approve").want(200, "Approved")
	in, err := s.poll(codes)
	if err != nil {
		s.t.Fatal(err)
	}
	if in.Profile.Person.ID != p.ID {
		s.t.Fatalf("the device is of %s, want %s", in.Profile.Person.ID, p.ID)
	}
	return in.DeviceID
}

// invite creates an invitation and returns its secret.
func (s *site) invite(d company.Draft) (secret string) {
	s.t.Helper()
	d.Lifetime = time.Hour
	s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
		_, secret, err = company.Invite(ctx, tx, d)
		return err
	})
	return secret
}

// only returns the id of the only row of a table.
func (s *site) only(table string) (id string) {
	s.t.Helper()
	if n := s.count(table); n != 1 {
		s.t.Fatalf("%s has %d rows", table, n)
	}
	if err := s.db.QueryRow(s.t.Context(), "SELECT id FROM "+table).Scan(&id); err != nil {
		s.t.Fatal(err)
	}
	return id
}
