package ledger

import (
	"context"
	"strconv"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
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
		if balance, err = Grant(ctx, tx, p.AccountID, tokens, Granted, memo); err != nil {
			return err
		}
		e := p.AccountEntry(audit.TokensGranted)
		e.Details = grantDetails(p.AccountID, tokens, memo)
		return audit.Add(ctx, tx, withBalance(e, tokens, balance))
	})
	return balance, err
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
