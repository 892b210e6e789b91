package signup

import (
	"context"
	"errors"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
)

// VouchForPerson locks and returns the person with the given e-mail address,
// which must be in a domain that a company has verified. If no such person
// exists, it creates one without a password and returns fresh = true; the
// person signs in with an OpenID provider or requests a password-reset link. If
// the e-mail address of an existing account was never verified, someone else may
// have created the account, so its sign-ins are ended and its access tokens
// deleted.
//
// The caller adds the returned entries to the audit log at the end of the
// transaction.
func (s *Service) VouchForPerson(ctx context.Context, tx *sqldb.Tx, email string) (p person.Person, fresh bool, entries []audit.Entry, err error) {
	p, err = lockByEmail(ctx, tx, email)
	if fault.Is(err, fault.NotFound) {
		if p, err = person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: true}); err != nil {
			return p, false, nil, err
		}
		return p, true, []audit.Entry{{Act: audit.PersonCreated, PersonID: p.ID}}, s.Grants.GrantSignup(ctx, tx, p.ID)
	}
	if err != nil || p.EmailVerified {
		return p, false, nil, err
	}
	ended, err := s.SignIn.TakeOver(ctx, tx, p, "")
	if err != nil {
		return p, false, nil, err
	}
	for _, t := range ended {
		entries = append(entries, audit.Entry{Act: audit.TokenDeleted, PersonID: p.ID, Details: map[string]string{"token": t.ID, "name": t.Name}})
	}
	if _, err := person.SetVerified(ctx, tx, p.ID, p.Email); err != nil {
		return p, false, nil, err
	}
	p.EmailVerified = true
	return p, false, append(entries, audit.Entry{Act: audit.PersonVerified, PersonID: p.ID}), nil
}

// lockByEmail locks and returns the person with the given e-mail address. It
// searches again if the person was deleted or got another e-mail address while it
// waited for the lock.
func lockByEmail(ctx context.Context, tx *sqldb.Tx, email string) (person.Person, error) {
	for {
		p, err := person.ByEmail(ctx, tx, email)
		if err != nil {
			return p, err
		}
		if err := person.Lock(ctx, tx, p.ID); errors.Is(err, person.ErrDeleted) {
			continue
		} else if err != nil {
			return p, err
		}
		if p, err = person.ByID(ctx, tx, p.ID); err != nil || p.HasEmail(email) {
			return p, err
		}
	}
}
