package principal

import (
	"context"
	"errors"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
)

// OperatorFor returns the operator's principal for a team. If teamID is "", it
// returns the principal for the personal account of the person with the given
// e-mail address, and locks that person's row.
func OperatorFor(ctx context.Context, tx *sqldb.Tx, email, teamID string) (Principal, error) {
	p := Operator()
	if teamID != "" {
		t, err := company.TeamByID(ctx, tx, teamID)
		p.AccountID = t.ID
		p.TeamID = t.ID
		p.CompanyID = t.CompanyID
		return p, err
	}
	owner, err := person.ByEmail(ctx, tx, email)
	if err == nil {
		err = person.Lock(ctx, tx, owner.ID)
	}
	p.AccountID = owner.ID
	return p, err
}

// OnAccount returns the principal of an operator for an account: the id of a
// team, or of a person, whose row it locks.
func (p Principal) OnAccount(ctx context.Context, tx *sqldb.Tx, accountID string) (Principal, error) {
	if !ids.Valid(accountID) {
		return p, errNoAccount
	}
	t, err := company.TeamByID(ctx, tx, accountID)
	if err == nil {
		p.AccountID = t.ID
		p.TeamID = t.ID
		p.CompanyID = t.CompanyID
		return p, nil
	}
	if !fault.Is(err, fault.NotFound) {
		return p, err
	}

	err = person.Lock(ctx, tx, accountID)
	if fault.Is(err, fault.NotFound) || errors.Is(err, person.ErrDeleted) {
		return p, errNoAccount
	}
	p.AccountID = accountID
	return p, err
}

var errNoAccount = fault.New(fault.NotFound, "There is no person or team with this id.")

// ForAccount returns a principal without a person, for actions that the service
// itself performs on an account, such as creating the account's first webhook
// secret. If the account is personal, ForAccount locks its owner.
func ForAccount(ctx context.Context, tx *sqldb.Tx, accountID string) (Principal, error) {
	p := Principal{AccountID: accountID}
	t, err := company.TeamByID(ctx, tx, accountID)
	switch {
	case err == nil:
		p.TeamID = t.ID
		p.CompanyID = t.CompanyID
		return p, nil
	case !fault.Is(err, fault.NotFound):
		return p, err
	}

	err = p.LockOwner(ctx, tx)
	if fault.Is(err, fault.NotFound) { // the id belongs to a team that has been removed
		p.TeamID = accountID
		return p, nil
	}
	return p, err
}

// LockOwner locks the row of the person who owns a personal account, so that
// the account is not deleted before tx ends. For a team account it does
// nothing.
func (p Principal) LockOwner(ctx context.Context, tx *sqldb.Tx) error {
	if p.TeamID != "" {
		return nil
	}
	return person.Lock(ctx, tx, p.AccountID)
}

// AccountEntry returns the audit log entry for an action of the principal on
// the principal's account.
func (p Principal) AccountEntry(act audit.Act) audit.Entry {
	e := audit.Entry{
		Act:       act,
		ActorID:   p.PersonID,
		CompanyID: p.CompanyID,
		Address:   p.Address,
	}
	if p.TeamID == "" {
		e.PersonID = p.AccountID
	}
	return e
}
