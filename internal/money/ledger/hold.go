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

// Hold is the tokens and the allowance held for a run.
type Hold struct {
	Tokens, Allowance int64
	// Month is the month of the allowance, as in 2026-11; empty: none is held.
	Month string
}

// Reserve holds the price of a run: first from the free allowance of the month,
// then in tokens. An account with too few tokens gets a
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

// Quote returns the hold that Reserve would make, whether the account has
// enough tokens, and the tokens that it has. It changes and locks nothing.
func Quote(ctx context.Context, tx *sqldb.Tx, accountID string, price, monthlyAllowance int64) (h Hold, enough bool, available int64, err error) {
	if err := checkPayable(accountID, price); err != nil {
		return Hold{}, false, 0, err
	}
	found, err := listAccounts(ctx, tx, []string{accountID})
	if err != nil {
		return Hold{}, false, 0, fmt.Errorf("quote: %w", err)
	}
	var a account // the zero account: no movement yet
	if len(found) == 1 {
		a = found[0]
	}
	h, enough = a.planHold(tx.Now, price, monthlyAllowance)
	return h, enough, a.posted - a.held, nil
}

// Settle ends the hold of a run, once. The charge, at most the hold, is paid
// from the allowance first and then in tokens; the rest of both is released, of
// the allowance only during its month. It returns the tokens and the allowance
// paid. A run that is settled already gets an error, and nothing has changed.
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
	if err := openAccount(ctx, tx, accountID); err != nil { // the settlement of a free run may be the first movement
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
	// The transaction is recorded before the account's row changes, so that a second
	// settlement ends here and changes nothing even if it is committed.
	fresh, err := recordMovement(ctx, tx, m)
	if err != nil {
		return err
	}
	if !fresh {
		return errors.New("the run is settled already")
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

// planHold divides a price between the allowance and the tokens of the account,
// and reports whether it has enough tokens.
func (a account) planHold(now time.Time, price, monthlyAllowance int64) (h Hold, enough bool) {
	b := a.balanceAt(now, monthlyAllowance)
	h.Allowance = min(price, b.FreeAllowanceLeft)
	h.Tokens = price - h.Allowance
	if h.Allowance > 0 {
		h.Month, _ = a.allowanceAt(now)
	}
	return h, h.Tokens <= b.Tokens
}

// checkPayable refuses prices and accounts that only a programming error can
// produce.
func checkPayable(accountID string, price int64) error {
	if price < 0 || price > maxTokens {
		return fmt.Errorf("ledger: invalid price %d", price)
	}
	return checkOwned(accountID)
}
