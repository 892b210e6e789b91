// Package signup creates accounts: for people who sign up or sign in with an
// OpenID provider, and for people whom the operator or their company's identity
// provider adds. It also accepts invitations to companies.
package signup

import (
	"context"
	"time"

	"atelier/internal/account/flow"
	"atelier/internal/account/signin"
	"atelier/internal/account/verification"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/notify/mail"
	"atelier/internal/people/company"
	"atelier/internal/people/oidc"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// Policy determines who may sign up.
type Policy string

// The policies, with the values of the configuration setting signup.
const (
	Open         Policy = "open"
	ByInvitation Policy = "invite"
	Closed       Policy = "closed" // the operator creates all accounts
)

// Service creates accounts. It is safe for concurrent use.
type Service struct {
	DB           *sqldb.DB
	SignIn       *signin.Service
	Verification *verification.Service
	Grants       *ledger.Grants
	Mail         flow.Mailer
	Policy       Policy
	// RequireVerified makes SignUp start no session until the e-mail address is
	// verified.
	RequireVerified bool
}

// Application contains the data of the sign-up form.
type Application struct {
	Email    string
	Password string
	// Invitation is the secret of an invitation. Setup is the set-up token that
	// the program prints at its first start. Either one permits a sign-up that
	// the policy would refuse.
	Invitation string
	Setup      string
	Client     session.Client
}

// signupsOfNetwork limits how many people can sign up from one network.
var signupsOfNetwork = ratelimit.Backoff{Free: 100, Span: time.Hour, First: time.Second, MaxWait: time.Minute}

// SignUp creates a person and signs them in. If e-mail addresses must be verified
// first, it starts no session and returns no cookie; the response is then the
// same for an e-mail address that is already in use.
func (s *Service) SignUp(ctx context.Context, a Application) (signin.NewSession, error) {
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		return flow.LimitNetwork(ctx, tx, "signup", a.Client.Network(), signupsOfNetwork)
	})
	if err != nil {
		return signin.NewSession{}, err
	}
	if err := person.CheckEmail(a.Email); err != nil {
		return signin.NewSession{}, err
	}
	if err := person.CheckNewPassword(a.Password, a.Email); err != nil {
		return signin.NewSession{}, err
	}
	if err := s.DB.Read(ctx, func(tx *sqldb.Tx) error { return s.checkPolicy(ctx, tx, a) }); err != nil { // before the password is hashed, which is slow
		return signin.NewSession{}, err
	}
	hash, err := person.HashPassword(ctx, a.Password)
	if err != nil {
		return signin.NewSession{}, err
	}
	var in signin.NewSession
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		in = signin.NewSession{}
		setsUp, err := s.useSetupToken(ctx, tx, a)
		verified := setsUp
		if err == nil && !verified {
			verified, err = provesAddress(ctx, tx, a)
		}
		if err != nil {
			return err
		}
		p, err := person.Create(ctx, tx, person.Draft{Email: a.Email, EmailVerified: verified, PasswordHash: hash})
		if fault.Is(err, fault.Invalid) && s.RequireVerified { // the e-mail address is already in use
			return s.remindOwner(ctx, tx, a.Email)
		}
		if err != nil {
			return err
		}
		if err := s.Grants.GrantSignup(ctx, tx, p.ID); err != nil {
			return err
		}
		if verified {
			err = verification.JoinByDomain(ctx, tx, p, a.Client.Address)
		} else {
			err = s.Verification.SendLink(ctx, tx, p)
		}
		if err != nil {
			return err
		}
		if a.Invitation != "" {
			if _, err := acceptSecret(ctx, tx, p, a.Invitation, a.Client.Address); err != nil {
				return err
			}
		}
		if err := flow.RecordOwnAct(ctx, tx, audit.PersonCreated, p.ID, a.Client.Address, nil); err != nil {
			return err
		}
		if setsUp {
			if err := s.Grants.GrantSetup(ctx, tx, p.ID, a.Client.Address); err != nil {
				return err
			}
		}
		if s.RequireVerified && !verified {
			return nil
		}
		in, err = s.SignIn.StartSession(ctx, tx, p, person.Password, a.Client)
		return err
	})
	return in, err
}

// useSetupToken uses up the set-up token of an application, which proves that
// the applicant is the operator. If a token is used several times at once, the
// first use succeeds; the policy applies to the others.
func (s *Service) useSetupToken(ctx context.Context, tx *sqldb.Tx, a Application) (bool, error) {
	if a.Setup == "" {
		return false, nil
	}
	ok, err := person.UseSetupToken(ctx, tx, a.Setup)
	if ok || err != nil {
		return ok, err
	}
	a.Setup = ""
	return false, s.checkPolicy(ctx, tx, a)
}

// remindOwner mails the owner of an e-mail address that they already have an
// account. The number of mails is limited, because anyone can cause them.
func (s *Service) remindOwner(ctx context.Context, tx *sqldb.Tx, email string) error {
	p, err := person.ByEmail(ctx, tx, email)
	if err != nil {
		return err
	}
	if id, _, err := ratelimit.TakeWithBackoff(ctx, tx, flow.PersonKey(ratelimit.Daily+"remind", p.ID), flow.MailsToPerson); err != nil || id == "" {
		return err
	}
	return s.Mail.Queue.QueueMessage(ctx, tx, mail.Message{
		To:      p.Email,
		Subject: "You already have an account",
		Text:    "Someone, probably you, tried to sign up with this e-mail address, which already has an account.\n\nSign in at " + s.Mail.AppURL + "/signin",
	})
}

// CreatePerson creates a person on behalf of the operator. The rules for new
// passwords do not apply.
func (s *Service) CreatePerson(ctx context.Context, d person.Draft) (p person.Person, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if p, err = person.Create(ctx, tx, d); err != nil {
			return err
		}
		if err := s.Grants.GrantSignup(ctx, tx, p.ID); err != nil {
			return err
		}
		if d.EmailVerified {
			if err := verification.JoinByDomain(ctx, tx, p, ""); err != nil {
				return err
			}
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonCreated, PersonID: p.ID})
	})
	return p, err
}

// checkPolicy refuses an application that the policy does not permit. The
// invitation is checked again in the transaction that accepts it.
func (s *Service) checkPolicy(ctx context.Context, tx *sqldb.Tx, a Application) error {
	if a.Setup != "" {
		if ok, err := person.IsSetupToken(ctx, tx, a.Setup); ok || err != nil {
			return err
		}
	}
	if a.Invitation != "" && s.Policy != Closed {
		return checkInvitation(ctx, tx, a)
	}
	switch s.Policy {
	case Open:
		return nil
	case ByInvitation:
		return fault.New(fault.Forbidden, "Signing up requires an invitation.").With("reason", "invitation")
	default:
		return fault.New(fault.Forbidden, "Only the operator of this service creates accounts.").With("reason", "closed")
	}
}

// checkInvitation refuses an application whose e-mail address differs from the
// invitation's. The error may reveal the invitation's e-mail address, because the
// applicant has the secret of the invitation.
func checkInvitation(ctx context.Context, tx *sqldb.Tx, a Application) error {
	inv, err := company.InvitationBySecret(ctx, tx, a.Invitation)
	if err != nil {
		return err
	}
	_, ok, err := company.MayJoin(ctx, tx, a.Invitation, a.Email)
	if err == nil && !ok {
		err = fault.New(fault.Invalid, "This invitation is for "+inv.Email+" only.").On("email")
	}
	return err
}

// IsSetupToken reports whether token is a set-up token that the service has
// printed, and no person exists yet.
func (s *Service) IsSetupToken(ctx context.Context, token string) (ok bool, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		ok, err = person.IsSetupToken(ctx, tx, token)
		return err
	})
	return ok, err
}

// provesAddress reports whether the applicant has proven ownership of the mail
// address by presenting an invitation that was mailed to it.
func provesAddress(ctx context.Context, tx *sqldb.Tx, a Application) (bool, error) {
	if a.Invitation == "" {
		return false, nil
	}
	inv, ok, err := company.MayJoin(ctx, tx, a.Invitation, a.Email)
	return ok && inv.Email != "", err
}

// CreateFromProvider creates an account for a person whom an OpenID provider
// has identified and who has no account yet.
func (s *Service) CreateFromProvider(ctx context.Context, tx *sqldb.Tx, who oidc.Identity, provider string, c session.Client) (person.Person, error) {
	invited, err := company.InvitationsFor(ctx, tx, who.Email)
	if err != nil {
		return person.Person{}, err
	}
	if s.Policy == Closed || s.Policy == ByInvitation && (len(invited) == 0 || !who.EmailVerified) {
		return person.Person{}, fault.New(fault.Forbidden, "No account has this e-mail address, and signing up is closed.").With("reason", "closed")
	}
	p, err := person.Create(ctx, tx, person.Draft{Email: who.Email, EmailVerified: who.EmailVerified})
	if err != nil {
		return p, err
	}
	if err := s.Grants.GrantSignup(ctx, tx, p.ID); err != nil {
		return p, err
	}
	if who.EmailVerified {
		err = verification.JoinByDomain(ctx, tx, p, c.Address)
	} else {
		err = s.Verification.SendLink(ctx, tx, p)
	}
	if err != nil {
		return p, err
	}
	return p, flow.RecordOwnAct(ctx, tx, audit.PersonCreated, p.ID, c.Address, map[string]string{"provider": provider})
}
