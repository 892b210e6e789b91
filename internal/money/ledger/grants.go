package ledger

import (
	"context"
	"strconv"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// Grants grants tokens (the unit of credit) to new people, to people who claim
// a free top-up, and on behalf of the operator. It is safe for concurrent use.
type Grants struct {
	DB           *sqldb.DB
	SignupTokens int64 // tokens for a new person
	SetupTokens  int64 // additional tokens for the person who sets up the installation
	TopUpTokens  int64 // tokens in one free top-up; 0 disables top-ups
	TopUpWindow  time.Duration
	// MonthlyAllowance is the number of tokens that every account can use for
	// free in each month.
	MonthlyAllowance int64
}

// FreeTopUp is the number of free tokens that a person can claim, and whether
// they can claim them now.
type FreeTopUp struct {
	Available bool
	Tokens    int64
}

// GrantSignup grants a new person their first tokens.
func (g *Grants) GrantSignup(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if g.SignupTokens <= 0 {
		return nil
	}
	_, err := Grant(ctx, tx, personID, g.SignupTokens, SignedUp, "")
	return err
}

// GrantSetup grants tokens to the person who sets up the installation, so that
// they can use it. This happens at most once: a set-up token can be used only
// once, and none is created after the first person exists.
func (g *Grants) GrantSetup(ctx context.Context, tx *sqldb.Tx, personID, address string) error {
	if g.SetupTokens == 0 {
		return nil
	}
	const memo = "set-up"
	balance, err := Grant(ctx, tx, personID, g.SetupTokens, Granted, memo)
	if err != nil {
		return err
	}
	e := audit.Entry{
		Act:      audit.TokensGranted,
		ActorID:  personID,
		PersonID: personID,
		Address:  address,
		Details:  grantDetails(personID, g.SetupTokens, memo),
	}
	return audit.Add(ctx, tx, withBalance(e, g.SetupTokens, balance))
}

// GrantByOperator grants tokens to a team, or to the personal account of the
// person with the given e-mail address. A negative number takes tokens back.
func (g *Grants) GrantByOperator(ctx context.Context, email, teamID string, tokens int64, memo string) (balance int64, err error) {
	err = g.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := principal.OperatorFor(ctx, tx, email, teamID)
		if err != nil {
			return err
		}
		_, balance, err = grantByOperator(ctx, tx, p, tokens, memo)
		return err
	})
	return balance, err
}

// grantByOperator grants tokens to the account of an operator's principal, and
// adds the audit entry.
func grantByOperator(ctx context.Context, tx *sqldb.Tx, p principal.Principal, tokens int64, memo string) (id string, balance int64, err error) {
	if id, balance, err = grantTokens(ctx, tx, p.AccountID, tokens, Granted, memo); err != nil {
		return "", 0, err
	}
	e := p.AccountEntry(audit.TokensGranted)
	e.Details = grantDetails(p.AccountID, tokens, memo)
	return id, balance, audit.Add(ctx, tx, withBalance(e, tokens, balance))
}

// GrantRequest is a grant that an operator requests with an idempotency key.
type GrantRequest struct {
	Key       string
	AccountID string // id of a person or a team
	Tokens    int64  // negative to take tokens back
	Note      string
}

// Receipt is a grant that has happened.
type Receipt struct {
	Entry     // of the account
	AccountID string
	Balance   int64 // tokens that could be spent after the grant
	Replayed  bool  // the grant happened at an earlier request with the same key
}

// GrantOnce grants tokens to an account on behalf of an operator. If the
// operator has used the key before, GrantOnce grants nothing and returns the
// first grant. Requests of one operator run one after the other, because the
// authorization of the request locks the operator's row.
func (g *Grants) GrantOnce(ctx context.Context, operator principal.Principal, r GrantRequest) (done Receipt, err error) {
	err = g.DB.Write(ctx, func(tx *sqldb.Tx) error {
		fingerprint := ids.Hash(r.AccountID + "\x00" + strconv.FormatInt(r.Tokens, 10) + "\x00" + r.Note)
		earlier, found, err := findGrantKey(ctx, tx, operator.PersonID, r.Key)
		switch {
		case err != nil:
			return err
		case found && earlier.fingerprint != fingerprint:
			return fault.New(fault.IdempotencyKeyConflict, "This Idempotency-Key was used with another request. Use a new one.")
		case found:
			done = earlier.receipt
			return nil
		}

		p, err := operator.OnAccount(ctx, tx, r.AccountID)
		if err != nil {
			return err
		}
		id, balance, err := grantByOperator(ctx, tx, p, r.Tokens, r.Note)
		if err != nil {
			return err
		}
		if err := insertGrantKey(ctx, tx, operator.PersonID, r.Key, fingerprint, id, balance); err != nil {
			return err
		}
		earlier, _, err = findGrantKey(ctx, tx, operator.PersonID, r.Key)
		done = earlier.receipt
		done.Replayed = false
		return err
	})
	return done, err
}

// TopUpOf returns the size of the free top-up, and whether a person can claim
// it now.
func (g *Grants) TopUpOf(ctx context.Context, tx *sqldb.Tx, personID string) (FreeTopUp, error) {
	if g.TopUpTokens == 0 {
		return FreeTopUp{}, nil
	}
	_, available, err := TopUpAt(ctx, tx, personID, g.TopUpWindow)
	return FreeTopUp{available, g.TopUpTokens}, err
}

// ClaimTopUp grants a person the free top-up, at most once in any period of
// length TopUpWindow.
func (g *Grants) ClaimTopUp(ctx context.Context, p principal.Principal) (t FreeTopUp, balance Balance, err error) {
	if g.TopUpTokens == 0 {
		return t, balance, fault.New(fault.Forbidden, "This installation has no free top-up.").With("reason", "off")
	}
	err = g.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, p.PersonID); err != nil {
			return err
		}
		spendable, err := TopUp(ctx, tx, p.PersonID, g.TopUpTokens, g.TopUpWindow)
		if err != nil {
			return err
		}
		all, err := Balances(ctx, tx, []string{p.PersonID}, g.MonthlyAllowance)
		if err != nil {
			return err
		}
		t = FreeTopUp{false, g.TopUpTokens}
		balance = all[p.PersonID]
		e := audit.Entry{Act: audit.TokensToppedUp, ActorID: p.PersonID, PersonID: p.PersonID, Address: p.Address}
		return audit.Add(ctx, tx, withBalance(e, g.TopUpTokens, spendable))
	})
	return t, balance, err
}

func grantDetails(accountID string, tokens int64, memo string) map[string]string {
	return map[string]string{"account": accountID, "tokens": strconv.FormatInt(tokens, 10), "note": memo}
}

// withBalance adds the balances before and after a grant of tokens to its audit
// entry. balance is the balance after the grant.
func withBalance(e audit.Entry, tokens, balance int64) audit.Entry {
	return e.WithChange(strconv.FormatInt(balance-tokens, 10), strconv.FormatInt(balance, 10))
}
