package signin

import (
	"context"
	"errors"
	"time"

	"atelier/internal/account/accesstoken"
	"atelier/internal/account/flow"
	"atelier/internal/account/verification"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// resetLifetime is how long a password-reset link is valid.
const resetLifetime = time.Hour

// RequestPasswordReset mails a password-reset link to the person with the given
// e-mail address, unless a link was sent recently. The response does not reveal
// whether an account with the address exists.
func (s *Service) RequestPasswordReset(ctx context.Context, email string, c session.Client) error {
	if err := person.CheckEmail(email); err != nil {
		return err
	}
	send, err := s.tryReset(ctx, email, c)
	if err != nil || !send {
		return err
	}
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		secret, err := person.CreateLink(ctx, tx, person.ResetLink, person.Link{PersonID: p.ID, Target: p.Email}, resetLifetime)
		if errors.Is(err, person.ErrDeleted) { // deleted by a concurrent request
			return nil
		}
		if err != nil {
			return err
		}
		err = s.Mail.Queue.QueueMessage(ctx, tx, mail.Message{
			To:      p.Email,
			Subject: "Choose a new password",
			Text: "Open this link to choose a new password:\n\n" + s.Mail.LinkURL("/reset", secret) +
				"\n\nThe link works once, within an hour. If you did not request it, ignore this mail: your password stays unchanged.",
		})
		if err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonResetRequested, PersonID: p.ID, Address: c.Address})
	})
}

// CheckResetLink returns an error if a password-reset link is not valid.
func (s *Service) CheckResetLink(ctx context.Context, secret string) error {
	_, err := s.readResetLink(ctx, secret)
	return err
}

// readResetLink returns the person and e-mail address of a password-reset link,
// and leaves the link valid.
func (s *Service) readResetLink(ctx context.Context, secret string) (l person.Link, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		l, err = person.FindLink(ctx, tx, person.ResetLink, secret)
		return err
	})
	return l, err
}

// ResetPassword sets a new password with a password-reset link, ends all
// sessions of the person, revokes their devices, and marks the e-mail address to
// which the link was sent as verified. If the address was not verified before,
// someone else may have used the account, so its access tokens are deleted too.
//
// The browser becomes a known browser of the person. ResetPassword returns the
// cookie that identifies it.
func (s *Service) ResetPassword(ctx context.Context, secret, password string, c session.Client) (browser string, err error) {
	l, err := s.readResetLink(ctx, secret) // checked first, because hashing a password is slow
	if err != nil {
		return "", err
	}
	if err := person.CheckNewPassword(password, l.Target); err != nil {
		return "", err
	}
	hash, err := person.HashPassword(ctx, password)
	if err != nil {
		return "", err
	}
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		l, err := person.UseLink(ctx, tx, person.ResetLink, secret)
		if err != nil {
			return err
		}
		p, err := flow.LockActivePerson(ctx, tx, l.PersonID)
		if err != nil {
			return err
		}
		ended, err := s.TakeOver(ctx, tx, p, hash)
		if err != nil {
			return err
		}
		if err := verification.MarkVerified(ctx, tx, p.ID, l.Target, c.Address); err != nil {
			return err
		}
		err = s.Mail.NotifyPerson(ctx, tx, p, flow.Notice{
			Kind:     "password",
			Subject:  "Your password was changed",
			Text:     "Your password was changed and you were signed out everywhere.",
			MailText: "If this was not you, reset your password at " + s.Mail.AppURL + "/forgot",
		})
		if err != nil {
			return err
		}
		if err := accesstoken.RecordDeleted(ctx, tx, principal.Principal{PersonID: p.ID, Address: c.Address}, ended); err != nil {
			return err
		}
		// The earlier links are no longer valid, so the rate limit that counts
		// them must not delay the next link.
		if err := ratelimit.Drop(ctx, tx, resetKey(p.Email)); err != nil {
			return err
		}
		if browser, err = session.RememberBrowser(ctx, tx, p.ID, c.KnownBrowser, s.KnownLifetime); err != nil {
			return err
		}
		return flow.RecordOwnAct(ctx, tx, audit.PersonPasswordChanged, p.ID, c.Address, nil)
	})
	if err != nil {
		return "", err
	}
	return browser, nil
}

// OperatorResetLink returns a new password-reset link, for the operator to pass
// on to the person if the installation sends no mail.
func (s *Service) OperatorResetLink(ctx context.Context, email string) (link string, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		secret, err := person.CreateLink(ctx, tx, person.ResetLink, person.Link{PersonID: p.ID, Target: p.Email}, resetLifetime)
		if err != nil {
			return err
		}
		link = s.Mail.LinkURL("/reset", secret)
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonResetRequested, PersonID: p.ID})
	})
	return link, err
}
