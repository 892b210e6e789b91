package identity

import (
	"context"
	"errors"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
)

// Vouch gives the person with an address that the owner of its domain vouches
// for, and locks them. Where nobody has it they are made, and fresh: without a
// password, they sign in with a provider or have a link sent to them. Whoever
// signed up with the address and never showed that it is theirs may be a
// stranger, and is put out of the account.
//
// The entries are for the caller to record at the end of the transaction.
func (d *Desk) Vouch(ctx context.Context, tx *sqldb.Tx, email string) (p person.Person, fresh bool, entries []audit.Entry, err error) {
	p, err = locate(ctx, tx, email)
	if fault.Is(err, fault.NotFound) {
		if p, err = person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: true}); err != nil {
			return p, false, nil, err
		}
		return p, true, []audit.Entry{{Act: audit.PersonCreated, PersonID: p.ID}}, d.welcome(ctx, tx, p)
	}
	if err != nil || p.EmailVerified {
		return p, false, nil, err
	}
	ended, err := d.takeOver(ctx, tx, p, "")
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

// locate finds and locks who has an address. While we waited for them they may
// have got another one, or been deleted, and then somebody else has it or nobody.
func locate(ctx context.Context, tx *sqldb.Tx, email string) (person.Person, error) {
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
