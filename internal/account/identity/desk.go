// Package identity is the front desk: it signs people up, in and out, in
// browsers and on devices, and tells them who they are.
//
// Every act is one transaction with its audit entry. Mail goes out through the
// queue of the same transaction, so a link exists exactly when its act does.
package identity

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/keyring"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/oidc"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// Parts are what a desk is made of.
type Parts struct {
	DB      *sqldb.DB
	Devices *device.Devices
	Tokens  *idtoken.Issuer
	Post    mailqueue.Office
	// Provider is where people can sign in besides here; nil for nowhere.
	Provider *oidc.Provider
	// Box seals what the provider gives us to keep.
	Box      keyring.Box
	Settings Settings
	Now      func() time.Time
}

// Settings are what the operator decides.
type Settings struct {
	AppURL string
	Signup Signup
	// RequireVerified lets people only look around until their address is verified.
	RequireVerified bool
	// NoMail says that there is no mail server: what would be mailed is printed
	// where the service logs.
	NoMail          bool
	SessionLifetime time.Duration
	// KnownLifetime is how long a browser counts as known after a sign-in.
	KnownLifetime time.Duration

	SignupGrant      int64 // tokens of a new person
	SetupGrant       int64 // tokens of whoever sets the service up, besides
	MonthlyAllowance int64 // free tokens of every account
	TopUp            int64 // tokens of a free top-up; 0: there is none
	TopUpWindow      time.Duration

	Storage quota.Limits // of what accounts store
}

// Signup is who may sign up.
type Signup string

// The ways to sign up.
const (
	Anybody Signup = "open"
	Invited Signup = "invite"
	Nobody  Signup = "closed"
)

// Desk does what the package says. It is safe for concurrent use.
type Desk struct{ Parts }

// New makes a desk.
func New(p Parts) *Desk { return &Desk{p} }

// act writes an audit entry of a person about themselves.
func act(ctx context.Context, tx *sqldb.Tx, a audit.Act, personID, address string, details map[string]string) error {
	return audit.Add(ctx, tx, audit.Entry{
		Act:      a,
		ActorID:  personID,
		PersonID: personID,
		Address:  address,
		Details:  details,
	})
}

// link makes an address of the sign-in pages.
func (d *Desk) link(path, secret string) string {
	return d.Settings.AppURL + path + "?" + url.Values{"token": {secret}}.Encode()
}

// tell notes something on a person's account page and mails it. more is for
// the mail alone: it may hold a link.
func (d *Desk) tell(ctx context.Context, tx *sqldb.Tx, p person.Person, kind, subject, text, more string) error {
	if err := person.Notify(ctx, tx, p.ID, kind, text); err != nil {
		return err
	}
	return d.Post.Send(ctx, tx, mail.Message{To: p.Email, Subject: subject, Text: text + "\n\n" + more})
}

// welcome does what every new person gets, once.
func (d *Desk) welcome(ctx context.Context, tx *sqldb.Tx, p person.Person) error {
	if d.Settings.SignupGrant > 0 {
		if _, err := ledger.Grant(ctx, tx, p.ID, d.Settings.SignupGrant, ledger.SignedUp, ""); err != nil {
			return err
		}
	}
	return nil
}

// joined brings a person whose address was just verified into the companies
// that own its domain.
func joined(ctx context.Context, tx *sqldb.Tx, p person.Person, address string) error {
	companyID, teams, err := company.JoinByDomain(ctx, tx, p.ID, p.Email)
	if err != nil || companyID == "" {
		return err
	}
	details := map[string]string{"how": string(company.ByDomain)}
	for _, t := range teams {
		details["team"] = t.ID
	}
	e := audit.Entry{
		Act:       audit.CompanyMemberSet,
		PersonID:  p.ID,
		CompanyID: companyID,
		Address:   address,
		Details:   details,
	}
	return audit.Add(ctx, tx, e.Changing("", company.RoleMember))
}

// Entered is a browser that was just signed in.
type Entered struct {
	Person  person.Person
	Cookie  string // of the session
	Browser string // by which the browser is known from now on
}

// enter starts a session for a person, whose row is locked. The browser is known
// to them from then on.
func (d *Desk) enter(ctx context.Context, tx *sqldb.Tx, p person.Person, provider string, v session.Client) (Entered, error) {
	_, cookie, err := session.Start(ctx, tx, session.Session{PersonID: p.ID, Provider: provider, Agent: v.UserAgent, Address: v.Address}, d.Settings.SessionLifetime)
	if err != nil {
		return Entered{}, fmt.Errorf("start session: %w", err)
	}
	browser, err := session.Remember(ctx, tx, p.ID, v.KnownBrowser, d.Settings.KnownLifetime)
	if err != nil {
		return Entered{}, fmt.Errorf("remember browser: %w", err)
	}
	return Entered{p, cookie, browser}, act(ctx, tx, audit.SessionSignedIn, p.ID, v.Address, map[string]string{"provider": provider})
}

// Sweep removes what ran out.
func Sweep(ctx context.Context, db *sqldb.DB, devices *device.Devices, tokens *idtoken.Issuer) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.SweepLinks(ctx, tx); err != nil {
			return err
		}
		if err := session.Sweep(ctx, tx); err != nil {
			return err
		}
		if err := tokens.Sweep(ctx, tx); err != nil {
			return err
		}
		if _, err := devices.Sweep(ctx, tx); err != nil {
			return err
		}
		if _, err := company.SweepInvitations(ctx, tx, tx.Now); err != nil {
			return err
		}
		_, err := ratelimit.Sweep(ctx, tx, tx.Now.Add(-rememberFor), sweptAtOnce)
		return err
	})
}

const (
	// rememberFor is longer than any window of the limits.
	rememberFor = 2 * time.Hour
	sweptAtOnce = 10_000
)
