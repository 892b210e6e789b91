// Package accounttest builds the account services with all their real
// dependencies, for tests that need people, companies and credentials. Its own
// test files contain the tests of the account services.
package accounttest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"atelier/internal/account"
	"atelier/internal/account/companyadmin"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/provisioning"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/base/fault"
	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/budget"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/oidc"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/web/access"
)

// Options are the settings that a test can override. Now must be the clock of
// the database.
type Options struct {
	Settings account.Settings
	Device   device.Options
	Provider *oidc.Provider
	Verified bool // require a verified e-mail address, like Settings.RequireVerified
	Now      func() time.Time
}

// Site is an installation of the account services for one test.
type Site struct {
	t            testing.TB
	DB           *sqldb.DB
	Keys         keyring.Ring
	Queue        queue.Queue
	Devices      *device.Devices
	Tokens       *idtoken.Issuer
	Accounts     *account.Services
	Companies    *companyadmin.Services
	Provisioning *provisioning.Service
	Budgets      *budget.Service
	Gate         *access.Gate

	visitors atomic.Int64
}

// AppURL is the public URL of the sign-in pages.
const AppURL = "https://atelier.example"

// Password is the password of every person that Person creates.
const Password = "correct horse battery"

// PasswordHash is a hash of Password that takes little time to check. The cost
// of a hash is stored with it.
var PasswordHash = func() string {
	salt := []byte("salt for tests..")
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, b64(salt), b64(argon2.IDKey([]byte(Password), salt, 1, 8, 1, 32)))
}()

// New builds an installation on db.
func New(t testing.TB, db *sqldb.DB, o Options) *Site {
	t.Helper()
	ring, err := keyring.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Site{t: t, DB: db, Keys: ring}
	if s.Queue, err = queue.Open(db, queue.Options{Now: o.Now}); err != nil {
		t.Fatal(err)
	}
	fill(&o)
	s.Devices = device.New(o.Device)
	s.Tokens = idtoken.New(db, idtoken.Options{Box: ring.BoxFor("signing_key"), Issuer: "atelier", Lifetime: time.Hour, WebLifetime: 10 * time.Minute, Now: o.Now})
	office := mailqueue.Outbox{Queue: s.Queue, Box: ring.BoxFor("mail")}
	s.Accounts = account.New(account.Parts{
		DB:       db,
		Devices:  s.Devices,
		Tokens:   s.Tokens,
		Post:     office,
		Provider: o.Provider,
		Box:      ring.BoxFor("person_identity"),
		Settings: o.Settings,
		Now:      o.Now,
	})
	s.Budgets = &budget.Service{
		Post:   office,
		Guard:  webhook.NewGuard(nil),
		Wake:   func() {},
		AppURL: AppURL,
	}
	s.Companies = companyadmin.New(companyadmin.Parts{
		DB:       db,
		Mail:     office,
		Resolver: net.DefaultResolver,
		AppURL:   AppURL,
		Budgets:  s.Budgets,
	})
	s.Provisioning = &provisioning.Service{DB: db, Mail: office, AppURL: AppURL, EnsureAccount: s.Accounts.SignUp.VouchForPerson}
	s.Gate = &access.Gate{
		DB:              db,
		Devices:         s.Devices,
		Tokens:          s.Tokens,
		RequireVerified: o.Verified,
		Operators:       o.Settings.Operators,
		Now:             o.Now,
	}
	return s
}

// fill sets the options that the test has not set to their defaults.
func fill(o *Options) {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	d := &o.Device
	d.Key = []byte("0123456789abcdef0123456789abcdef")
	d.Now = o.Now
	d.OnReplay = devicelogin.RecordReplay
	d.MaxGrants = cmp.Or(d.MaxGrants, 50_000)
	d.MaxPerNetwork = cmp.Or(d.MaxPerNetwork, 200)
	set(&d.ExpiresIn, 10*time.Minute)
	set(&d.Interval, 5*time.Second)
	set(&d.MaxInterval, time.Minute)
	set(&d.RotateAfter, 24*time.Hour)
	set(&d.Grace, time.Minute)
	c := &o.Settings
	if c.AppURL == "" {
		c.AppURL = AppURL
	}
	c.BaseURL = cmp.Or(c.BaseURL, c.AppURL)
	if c.Signup == "" {
		c.Signup = signup.Open
	}
	c.RequireVerified = c.RequireVerified || o.Verified
	set(&c.SessionLifetime, 24*time.Hour)
	set(&c.KnownLifetime, 180*24*time.Hour)
	set(&c.TopUpWindow, 24*time.Hour)
}

// Client returns a browser or device with a new IP address, because rate limits
// count per IP address.
func (s *Site) Client() session.Client {
	n := s.visitors.Add(1)
	return session.Client{UserAgent: "a test", Address: fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)}
}

// Person creates a person with a verified e-mail address and returns their id.
func (s *Site) Person(email string) string {
	s.t.Helper()
	p, err := s.Accounts.SignUp.CreatePerson(s.t.Context(), person.Draft{Email: email, EmailVerified: true, PasswordHash: PasswordHash})
	if err != nil {
		s.t.Fatal(err)
	}
	return p.ID
}

// Session signs a person in with a new browser and returns the session.
func (s *Site) Session(email string) signin.Session {
	s.t.Helper()
	in, err := s.Accounts.SignIn.SignIn(s.t.Context(), email, Password, s.Client())
	if err != nil {
		s.t.Fatal(err)
	}
	found, err := s.Accounts.SignIn.FindSession(s.t.Context(), in.Cookie, "10.0.0.1")
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// Start starts a device sign-in for a plugin of the given kind, and returns the
// codes of the sign-in.
func (s *Site) Start(kind string) device.Codes {
	s.t.Helper()
	codes, err := s.Accounts.Devices.Start(s.t.Context(), kind, s.Client())
	if err != nil {
		s.t.Fatal(err)
	}
	return codes
}

// Decide approves or refuses a device sign-in from a signed-in browser.
func (s *Site) Decide(in signin.Session, codes device.Codes, approve bool) error {
	by := in.Principal(s.Client().Address)
	g, err := s.Accounts.Devices.OpenGrant(s.t.Context(), by, codes.UserCode)
	if err != nil {
		return err
	}
	_, err = s.Accounts.Devices.DecideGrant(s.t.Context(), by, devicelogin.Answer{GrantID: g.ID, UserCode: codes.UserCode, Approve: approve})
	return err
}

// Device signs a person in on a new device with a plugin of the given kind. It
// needs no password, so it works for every person.
func (s *Site) Device(personID, kind string) devicelogin.Login {
	s.t.Helper()
	var browser session.Session
	err := s.DB.Write(s.t.Context(), func(tx *sqldb.Tx) (err error) {
		browser, _, err = session.Start(s.t.Context(), tx, session.Session{PersonID: personID, Provider: "password"}, time.Hour)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	codes := s.Start(kind)
	if err := s.Decide(signin.Session{Session: browser}, codes, true); err != nil {
		s.t.Fatal(err)
	}
	in, err := s.Accounts.Devices.Poll(s.t.Context(), codes.DeviceCode, s.Client())
	if err != nil {
		s.t.Fatal(err)
	}
	return in
}

// Token creates a personal access token for the person with the given mail
// address, or a company access token if companyID is set.
func (s *Site) Token(email, companyID string) (id, secret string) {
	s.t.Helper()
	t, secret, err := s.Accounts.AccessTokens.CreateTokenForEmail(s.t.Context(), email, companyID, "test")
	if err != nil {
		s.t.Fatal(err)
	}
	return t.ID, secret
}

// Company creates a company and returns its id.
func (s *Site) Company(name string, plan company.Plan) string {
	s.t.Helper()
	c, err := s.Companies.CreateCompany(s.t.Context(), principal.Operator(), name, plan)
	if err != nil {
		s.t.Fatal(err)
	}
	return c.ID
}

// Admit makes a person a member of a company with exactly these permissions.
func (s *Site) Admit(companyID, email string, perms ...company.Permission) {
	s.t.Helper()
	if _, err := s.Companies.Members.SetMemberPermissions(s.t.Context(), principal.Operator(), companyID, email, perms); err != nil {
		s.t.Fatal(err)
	}
}

// Team creates a team with members who all have the same role, and returns its
// id.
func (s *Site) Team(companyID, name, role string, emails ...string) string {
	s.t.Helper()
	t, err := s.Companies.Teams.CreateTeam(s.t.Context(), principal.Operator(), companyID, name)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, email := range emails {
		s.Join(t.ID, email, role)
	}
	return t.ID
}

// Join adds a person to a team with the named role, and creates the role if the
// team does not have it.
func (s *Site) Join(teamID, email, role string) {
	s.t.Helper()
	if _, err := s.Companies.TeamRoles.SetTeamRolePermissions(s.t.Context(), principal.Operator(), teamID, role, nil); err != nil && !fault.Is(err, fault.Invalid) {
		s.t.Fatal(err)
	}
	if _, err := s.Companies.TeamMembers.AddTeamMember(s.t.Context(), principal.Operator(), teamID, email, role); err != nil {
		s.t.Fatal(err)
	}
}
