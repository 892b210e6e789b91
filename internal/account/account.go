// Package account builds the services for creating and using accounts: sign-up,
// sign-in, devices, access tokens and profiles.
package account

import (
	"context"
	"time"

	"atelier/internal/account/accesstoken"
	"atelier/internal/account/applogin"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/flow"
	"atelier/internal/account/openidlogin"
	"atelier/internal/account/profile"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/account/verification"
	"atelier/internal/base/keyring"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/oauthclient"
	"atelier/internal/people/oidc"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Parts are the dependencies of the account services.
type Parts struct {
	DB      *sqldb.DB
	Devices *device.Devices
	Tokens  *idtoken.Issuer
	Post    mailqueue.Outbox
	// Provider is the OpenID provider with which people can sign in, or nil if
	// there is none.
	Provider *oidc.Provider
	// Box encrypts the provider's refresh tokens.
	Box      keyring.Box
	Settings Settings
	Now      func() time.Time
}

// Settings are the operator's settings for accounts.
type Settings struct {
	AppURL  string
	BaseURL string // of the API
	Signup  signup.Policy
	// RequireVerified restricts people to reading until their e-mail address is
	// verified.
	RequireVerified bool
	// NoMail means that there is no mail server, and that mail is printed to
	// the service's log instead.
	NoMail          bool
	SessionLifetime time.Duration
	// KnownLifetime is how long after a sign-in a browser counts as known,
	// which means that the person has used it before.
	KnownLifetime time.Duration

	SignupGrant      int64 // tokens (the unit of credit) granted to a new person
	SetupGrant       int64 // additional tokens granted to the person who sets up the installation
	MonthlyAllowance int64 // free tokens per month for every account
	TopUp            int64 // number of tokens in a free top-up; 0 disables top-ups
	TopUpWindow      time.Duration

	Storage quota.Limits // limits on the bytes that each account stores

	Operators principal.Operators // the people who may operate the installation
}

// Services are the account services. They are safe for concurrent use.
type Services struct {
	DB           *sqldb.DB
	Settings     Settings
	SignUp       *signup.Service
	SignIn       *signin.Service
	OpenID       *openidlogin.Service
	Verification *verification.Service
	Devices      *devicelogin.Service
	Apps         *applogin.Service
	AccessTokens *accesstoken.Service
	Profiles     *profile.Service
	Grants       *ledger.Grants
}

// New creates the account services and connects them.
func New(p Parts) *Services {
	mailer := flow.Mailer{Queue: p.Post, AppURL: p.Settings.AppURL}
	s := &Services{DB: p.DB, Settings: p.Settings}
	s.Grants = &ledger.Grants{
		DB:               p.DB,
		SignupTokens:     p.Settings.SignupGrant,
		SetupTokens:      p.Settings.SetupGrant,
		TopUpTokens:      p.Settings.TopUp,
		TopUpWindow:      p.Settings.TopUpWindow,
		MonthlyAllowance: p.Settings.MonthlyAllowance,
	}
	s.AccessTokens = &accesstoken.Service{DB: p.DB, Mail: mailer}
	s.Verification = &verification.Service{DB: p.DB, Mail: mailer}
	s.Profiles = &profile.Service{
		DB:        p.DB,
		Devices:   p.Devices,
		Grants:    s.Grants,
		Storage:   p.Settings.Storage,
		Operators: p.Settings.Operators,
	}
	s.SignIn = &signin.Service{
		DB:              p.DB,
		Devices:         p.Devices,
		Tokens:          p.Tokens,
		Mail:            mailer,
		SessionLifetime: p.Settings.SessionLifetime,
		KnownLifetime:   p.Settings.KnownLifetime,
		Now:             p.Now,
	}
	s.SignUp = &signup.Service{
		DB:              p.DB,
		SignIn:          s.SignIn,
		Verification:    s.Verification,
		Grants:          s.Grants,
		Mail:            mailer,
		Policy:          p.Settings.Signup,
		RequireVerified: p.Settings.RequireVerified,
	}
	s.OpenID = &openidlogin.Service{
		DB:       p.DB,
		Devices:  p.Devices,
		Provider: p.Provider,
		Box:      p.Box,
		SignIn:   s.SignIn,
		SignUp:   s.SignUp,
		Mail:     mailer,
		Now:      p.Now,
	}
	s.Devices = &devicelogin.Service{
		DB:       p.DB,
		Devices:  p.Devices,
		Tokens:   p.Tokens,
		SignIn:   s.SignIn,
		OpenID:   s.OpenID,
		Profiles: s.Profiles,
		Mail:     mailer,
	}
	s.Apps = &applogin.Service{
		DB:      p.DB,
		Devices: p.Devices,
		Logins:  s.Devices,
		Tokens:  p.Tokens,
		BaseURL: p.Settings.BaseURL,
	}
	return s
}

// DeleteExpired deletes expired links, sessions, signing keys, device sign-ins,
// unused apps, invitations and rate-limit rows.
func DeleteExpired(ctx context.Context, db *sqldb.DB, devices *device.Devices, tokens *idtoken.Issuer) error {
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.DeleteExpiredLinks(ctx, tx); err != nil {
			return err
		}
		if err := session.DeleteExpired(ctx, tx); err != nil {
			return err
		}
		if err := tokens.DeleteExpiredKeys(ctx, tx); err != nil {
			return err
		}
		if _, err := devices.DeleteExpiredGrants(ctx, tx); err != nil {
			return err
		}
		if _, err := oauthclient.DeleteUnused(ctx, tx); err != nil {
			return err
		}
		if _, err := company.DeleteExpiredInvitations(ctx, tx, tx.Now); err != nil {
			return err
		}
		_, err := ratelimit.Sweep(ctx, tx, tx.Now.Add(-maxLimitSpan), maxLimitRows)
		return err
	})
}

const (
	// maxLimitSpan is the age at which rate-limit rows are deleted. It is
	// longer than the window of every rate limit except daily ones, whose rows
	// are kept for another day.
	maxLimitSpan = 2 * time.Hour
	// maxLimitRows is the maximum number of rate-limit rows that one
	// transaction deletes.
	maxLimitRows = 10_000
)
