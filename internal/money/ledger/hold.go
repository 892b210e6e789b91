package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Hold is what is reserved for a run.
type Hold struct {
	Tokens, Allowance int64
	// Month is whose allowance it is, as in 2026-11; empty where none is held.
	Month string
}

// Reserve holds a price for a run: first what the month's free allowance still
// has, then tokens. An account that has too few gets a
// fault.InsufficientBalance, and nothing has changed. The account stays locked
// until the transaction ends.
func Reserve(ctx context.Context, tx *sqldb.Tx, accountID string, price, monthlyAllowance int64) (Hold, error) {
	if err := checkPayable(accountID, price); err != nil {
		return Hold{}, err
	}
	if price == 0 {
		return Hold{}, nil
	}
	if err := openAccount(ctx, tx, accountID); err != nil {
		return Hold{}, err
	}
	a, err := lockAccount(ctx, tx, accountID)
	if err != nil {
		return Hold{}, fmt.Errorf("reserve: %w", err)
	}
	h, enough := a.planHold(tx.Now, price, monthlyAllowance)
	if !enough {
		return Hold{}, fault.New(fault.InsufficientBalance, "The account has too few tokens for this.").
			With("required", h.Tokens).With("available", a.posted-a.held)
	}
	month, used := a.allowanceAt(tx.Now)
	ok, err := holdTokens(ctx, tx, a, h.Tokens, month, used+h.Allowance)
	if err == nil && !ok {
		err = errors.New("the account changed while it was locked")
	}
	if err != nil {
		return Hold{}, fmt.Errorf("reserve: %w", err)
	}
	return h, nil
}

// Quote says what Reserve would do, without doing it or locking anything: what
// it would hold, whether the account has enough, and the tokens that it has.
func Quote(ctx context.Context, tx *sqldb.Tx, accountID string, price, monthlyAllowance int64) (h Hold, enough bool, available int64, err error) {
	if err := checkPayable(accountID, price); err != nil {
		return Hold{}, false, 0, err
	}
	found, err := listAccounts(ctx, tx, []string{accountID})
	if err != nil {
		return Hold{}, false, 0, fmt.Errorf("quote: %w", err)
	}
	var a account // one that nothing was moved to yet
	if len(found) == 1 {
		a = found[0]
	}
	h, enough = a.planHold(tx.Now, price, monthlyAllowance)
	return h, enough, a.posted - a.held, nil
}

// Settle ends a hold, once per run. The charge, at most what is held, is paid
// from the allowance first and then in tokens; the rest of both is given back,
// of the allowance only while its month lasts. It says what was paid of each. A
// run that was settled before gets an error, and nothing has changed.
func Settle(ctx context.Context, tx *sqldb.Tx, accountID, runID string, h Hold, charge int64) (tokens, allowance int64, err error) {
	if runID == "" || h.Tokens < 0 || h.Allowance < 0 || h.Tokens > maxTokens || h.Allowance > maxTokens ||
		(h.Month == "") != (h.Allowance == 0) || charge < 0 || charge > h.Tokens+h.Allowance {
		return 0, 0, fmt.Errorf("settle run %q: %d of %+v", runID, charge, h)
	}
	allowance = min(charge, h.Allowance)
	tokens = charge - allowance
	if err := settleHold(ctx, tx, accountID, runID, h, tokens, allowance); err != nil {
		return 0, 0, fmt.Errorf("settle run %s: %w", runID, err)
	}
	return tokens, allowance, nil
}

func settleHold(ctx context.Context, tx *sqldb.Tx, accountID, runID string, h Hold, tokens, allowance int64) error {
	if err := openAccount(ctx, tx, accountID); err != nil { // a run that is free may be the first thing an account has
		return err
	}
	if _, err := lockAccount(ctx, tx, accountID); err != nil {
		return err
	}
	m := movement{
		id:        ids.New(),
		kind:      Settled,
		runID:     runID,
		system:    systemRevenue,
		account:   accountID,
		tokens:    -tokens,
		allowance: allowance,
	}
	// The record comes before the account's row changes, so that a second
	// settlement ends here and leaves no trace even if somebody commits it.
	fresh, err := recordMovement(ctx, tx, m)
	if err != nil {
		return err
	}
	if !fresh {
		return errors.New("it is settled already")
	}
	ok, err := releaseHold(ctx, tx, accountID, h, tokens, allowance)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("account %s does not hold %+v", accountID, h)
	}
	return bookEntries(ctx, tx, m)
}

// planHold divides a price between the allowance and the tokens of the account, and
// says whether it has as many.
func (a account) planHold(now time.Time, price, monthlyAllowance int64) (h Hold, enough bool) {
	b := a.balanceAt(now, monthlyAllowance)
	h.Allowance = min(price, b.FreeAllowanceLeft)
	h.Tokens = price - h.Allowance
	if h.Allowance > 0 {
		h.Month, _ = a.allowanceAt(now)
	}
	return h, h.Tokens <= b.Tokens
}

// checkPayable refuses prices and accounts that only a mistake of ours can bring.
func checkPayable(accountID string, price int64) error {
	if price < 0 || price > maxTokens {
		return fmt.Errorf("ledger: a price of %d", price)
	}
	return checkOwned(accountID)
}
