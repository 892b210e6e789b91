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

// Hold is the amount that is reserved for a run until it ends: tokens, and part
// of the account's free monthly allowance.
type Hold struct {
	Tokens, Allowance int64
	// Month is the month of the allowance, such as 2026-11. It is empty if
	// Allowance is 0.
	Month string
}

// Reserve reserves the price of a run: first from the free allowance of the
// month, then in tokens. If the account has too few tokens, it changes nothing
// and returns a fault.InsufficientBalance. The account stays locked until the
// transaction ends.
func Reserve(ctx context.Context, tx *sqldb.Tx, accountID string, price, monthlyAllowance int64) (Hold, error) {
	if err := checkPayable(accountID, price); err != nil {
		return Hold{}, err
	}
	if price == 0 {
		return Hold{}, nil
	}
	a, err := openAndLockAccount(ctx, tx, accountID)
	if err != nil {
		return Hold{}, fmt.Errorf("reserve tokens: %w", err)
	}
	h, enough := a.planHold(tx.Now, price, monthlyAllowance)
	if !enough {
		return Hold{}, fault.New(fault.InsufficientBalance, "The account does not have enough tokens.").
			With("required", h.Tokens).With("available", a.posted-a.held)
	}
	month, used := a.allowanceAt(tx.Now)
	if err := holdTokens(ctx, tx, a, h.Tokens, month, used+h.Allowance); err != nil {
		return Hold{}, fmt.Errorf("reserve tokens: %w", err)
	}
	return h, nil
}

// Quote returns the hold (reservation) that Reserve would make, whether the
// account has enough tokens for it, and the number of tokens that the account
// can spend. It changes and locks nothing.
func Quote(ctx context.Context, tx *sqldb.Tx, accountID string, price, monthlyAllowance int64) (h Hold, enough bool, available int64, err error) {
	if err := checkPayable(accountID, price); err != nil {
		return Hold{}, false, 0, err
	}
	found, err := listAccounts(ctx, tx, []string{accountID})
	if err != nil {
		return Hold{}, false, 0, fmt.Errorf("quote price: %w", err)
	}
	var a account // stays zero for an account that has no ledger transactions
	if len(found) == 1 {
		a = found[0]
	}
	h, enough = a.planHold(tx.Now, price, monthlyAllowance)
	return h, enough, a.posted - a.held, nil
}

// Settle charges for a run and ends its hold (the reservation of its price).
// The charge, which is at most the hold, is paid from the allowance first and
// then in tokens; the unused part of the hold is released. Allowance is
// released only if its month has not ended. Settle returns the tokens and the
// allowance paid. If the run is already settled, it changes nothing and returns
// an error.
func Settle(ctx context.Context, tx *sqldb.Tx, accountID, runID string, h Hold, charge int64) (tokens, allowance int64, err error) {
	if runID == "" || h.Tokens < 0 || h.Allowance < 0 || h.Tokens > maxTokens || h.Allowance > maxTokens ||
		(h.Month == "") != (h.Allowance == 0) || charge < 0 || charge > h.Tokens+h.Allowance {
		return 0, 0, fmt.Errorf("settle run %q: a charge of %d tokens is invalid for the hold %+v", runID, charge, h)
	}
	allowance = min(charge, h.Allowance)
	tokens = charge - allowance
	if err := settleHold(ctx, tx, accountID, runID, h, tokens, allowance); err != nil {
		return 0, 0, fmt.Errorf("settle run %s: %w", runID, err)
	}
	return tokens, allowance, nil
}

func settleHold(ctx context.Context, tx *sqldb.Tx, accountID, runID string, h Hold, tokens, allowance int64) error {
	if _, err := openAndLockAccount(ctx, tx, accountID); err != nil { // the account of a free run may not have a row yet
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
	// The ledger transaction is recorded before the account's row changes. A
	// second settlement of the run therefore fails here and changes nothing,
	// even if the caller ignores the error and commits.
	fresh, err := recordMovement(ctx, tx, m)
	if err != nil {
		return err
	}
	if !fresh {
		return errors.New("the run is already settled")
	}
	ok, err := releaseHold(ctx, tx, accountID, h, tokens, allowance)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("the held tokens or the used allowance of account %s are smaller than the hold %+v", accountID, h)
	}
	return bookEntries(ctx, tx, m)
}

// planHold divides a price between the account's allowance and its tokens, and
// reports whether the account has enough tokens.
func (a account) planHold(now time.Time, price, monthlyAllowance int64) (h Hold, enough bool) {
	b := a.balanceAt(now, monthlyAllowance)
	h.Allowance = min(price, b.FreeAllowanceLeft)
	h.Tokens = price - h.Allowance
	if h.Allowance > 0 {
		h.Month, _ = a.allowanceAt(now)
	}
	return h, h.Tokens <= b.Tokens
}

// checkPayable returns an error for invalid prices and accounts, which only a
// programming error can cause.
func checkPayable(accountID string, price int64) error {
	if price < 0 || price > maxTokens {
		return fmt.Errorf("ledger: invalid price %d", price)
	}
	return checkOwned(accountID)
}
