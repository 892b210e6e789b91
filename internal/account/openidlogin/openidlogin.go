// Package openidlogin signs people in with an OpenID provider. Whenever a
// device refreshes its tokens, the package queries the provider to check that
// the person still exists there.
package openidlogin

import (
	"context"
	"errors"
	"time"

	"atelier/internal/account/accesstoken"
	"atelier/internal/account/flow"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/account/verification"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/keyring"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/oidc"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Service signs people in with an OpenID provider. It is safe for concurrent
// use.
type Service struct {
	DB       *sqldb.DB
	Devices  *device.Devices
	Provider *oidc.Provider // nil if no provider is configured
	Box      keyring.Box    // encrypts the provider's refresh tokens
	SignIn   *signin.Service
	SignUp   *signup.Service
	Mail     flow.Mailer
	Now      func() time.Time
}

// FinishSignIn signs a browser in as the person whom the provider has
// identified.
func (s *Service) FinishSignIn(ctx context.Context, pending oidc.Pending, state, code string, c session.Client) (signin.NewSession, error) {
	who, err := s.Provider.FinishSignIn(ctx, pending, state, code)
	if err != nil {
		return signin.NewSession{}, err
	}
	var in signin.NewSession
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := s.findOrCreate(ctx, tx, who, c)
		if err != nil {
			return err
		}
		if p, err = flow.LockActivePerson(ctx, tx, p.ID); err != nil {
			return err
		}
		err = person.StoreIdentity(ctx, tx, person.Identity{
			Issuer:   who.Issuer,
			Subject:  who.Subject,
			PersonID: p.ID,
			Provider: s.Provider.DisplayName(),
			Refresh:  s.sealRefresh(who),
		})
		if err != nil {
			return err
		}
		in, err = s.SignIn.StartSession(ctx, tx, p, s.Provider.DisplayName(), c)
		return err
	})
	return in, err
}

// findOrCreate returns the person whom the provider has identified, and creates
// an account if the person has none. If an account with the same e-mail address
// exists, it is linked to the provider, but only if the provider has verified
// the address.
func (s *Service) findOrCreate(ctx context.Context, tx *sqldb.Tx, who oidc.Identity, c session.Client) (person.Person, error) {
	p, err := person.ByIdentity(ctx, tx, who.Issuer, who.Subject)
	if !fault.Is(err, fault.NotFound) {
		return p, err
	}
	p, err = person.ByEmail(ctx, tx, who.Email)
	if fault.Is(err, fault.NotFound) {
		return s.SignUp.CreateFromProvider(ctx, tx, who, s.Provider.DisplayName(), c)
	}
	if err != nil {
		return p, err
	}
	if !who.EmailVerified {
		return p, fault.New(fault.Forbidden, "An account with your e-mail address already exists, and your identity provider has not verified the address.").With("reason", "unverified")
	}
	var ended []credential.Token
	if !p.EmailVerified { // someone else may have signed up with this e-mail address
		if ended, err = s.SignIn.TakeOver(ctx, tx, p, ""); err != nil {
			return p, err
		}
		if err := verification.MarkVerified(ctx, tx, p.ID, p.Email, c.Address); err != nil {
			return p, err
		}
	}
	err = s.Mail.NotifyPerson(ctx, tx, p, flow.Notice{
		Kind:     "provider",
		Subject:  "A new way to sign in",
		Text:     "You can now sign in with " + s.Provider.DisplayName() + ".",
		MailText: "If this was not you, check your devices at " + s.Mail.AppURL + "/devices",
	})
	if err != nil {
		return p, err
	}
	if err := accesstoken.RecordDeleted(ctx, tx, principal.Principal{PersonID: p.ID, Address: c.Address}, ended); err != nil {
		return p, err
	}
	return p, flow.RecordOwnAct(ctx, tx, audit.IdentityLinked, p.ID, c.Address, map[string]string{"provider": s.Provider.DisplayName()})
}

func (s *Service) sealRefresh(who oidc.Identity) string {
	if who.Refresh == "" {
		return ""
	}
	return s.Box.Seal([]byte(who.Refresh), identityRow(who.Issuer, who.Subject))
}

// identityRow names the database row to which an encrypted refresh token is
// bound.
func identityRow(issuer, subject string) string { return "person_identity " + issuer + " " + subject }

const (
	// confirmTimeout is the duration of the lease for a request to the
	// provider, and the time for which concurrent calls wait for its result.
	confirmTimeout = 15 * time.Second
	confirmPause   = 100 * time.Millisecond
)

// errUnavailable is a temporary refusal of a token refresh. The device's
// refresh token stays valid.
var errUnavailable = fault.New(fault.Unavailable, "Your identity provider does not respond. Try again.")

// ConfirmRefresh checks that the person of a device's refresh token still
// exists at the provider, if they signed in with the provider. It must be
// called before the refresh token is used. If the person no longer exists,
// ConfirmRefresh signs them out everywhere before it returns.
func (s *Service) ConfirmRefresh(ctx context.Context, refreshToken string) error {
	if s.Provider == nil {
		return nil
	}
	dev, found, err := s.Devices.ByRefresh(ctx, s.DB, refreshToken)
	if err != nil || !found || dev.Provider != s.Provider.DisplayName() {
		return err
	}
	return s.confirmPerson(ctx, dev.PersonID)
}

// confirmPerson checks that a person still exists at the provider, if the
// provider has issued a refresh token for them. Of several concurrent calls
// only one sends a request, and the others use its result.
func (s *Service) confirmPerson(ctx context.Context, personID string) error {
	for began := s.Now(); ; {
		var i person.Identity
		var mine, settled bool
		err := s.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			mine = false
			i, settled, err = person.IdentityAt(ctx, tx, personID, s.Provider.DisplayName())
			settled = !settled || i.Refresh == "" || i.Checked.After(began)
			if err == nil && !settled {
				mine, err = person.ClaimConfirmation(ctx, tx, i, confirmTimeout)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case settled:
			return nil
		case mine:
			return s.askProvider(ctx, i)
		case s.Now().Sub(began) > confirmTimeout:
			return errUnavailable
		}
		select { // another call has sent the request and will store the result in the row
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(confirmPause):
		}
	}
}

// askProvider queries the provider about a person and stores the result.
func (s *Service) askProvider(ctx context.Context, i person.Identity) error {
	refresh, err := s.Box.Open(i.Refresh, identityRow(i.Issuer, i.Subject))
	if err != nil {
		return err
	}
	next, err := s.Provider.ConfirmPerson(ctx, string(refresh))
	keep := context.WithoutCancel(ctx) // the response must be stored even if the client disconnects
	switch {
	case errors.Is(err, oidc.ErrUnknownPerson):
		return s.DB.Write(keep, func(tx *sqldb.Tx) error {
			if err := person.Lock(keep, tx, i.PersonID); err != nil {
				return err
			}
			if lost, err := person.ForgetIdentity(keep, tx, i); err != nil || !lost { // false if the person has since signed in with the provider again
				return err
			}
			if err := flow.EndSignIns(keep, tx, s.Devices, i.PersonID); err != nil {
				return err
			}
			return audit.Add(keep, tx, audit.Entry{Act: audit.IdentityLost, PersonID: i.PersonID, Details: map[string]string{"provider": i.Provider}})
		})
	case err != nil:
		if back := s.DB.Write(keep, func(tx *sqldb.Tx) error { return person.ReleaseConfirmation(keep, tx, i) }); back != nil {
			return back
		}
		return errUnavailable.Because(err)
	}
	sealed := s.Box.Seal([]byte(next), identityRow(i.Issuer, i.Subject))
	return s.DB.Write(keep, func(tx *sqldb.Tx) error { return person.RecordConfirmation(keep, tx, i, sealed) })
}
