// Package ledger keeps the tokens of accounts.
//
// It is double-entry: a transaction moves tokens from one account to another,
// its entries sum to zero, and neither is ever changed. An account's row holds
// the sum of its entries (posted) and what is reserved of it (held); tokens that
// come from or go to the outside have a system account on the other side, the
// only kind that may be below zero.
//
//	system:grants ──grant, signup, top_up──▶ account ──settle──▶ system:revenue
//
// A run holds its price from its beginning: first what is left of the month's
// free allowance, then tokens. Both are a column of the account's row and no
// movement. When the run ends, its one settlement pays for what was delivered
// and gives the rest of the hold back.
//
//	Reserve   held + tokens                  allowance_used + allowance
//	Settle    held - tokens, posted - paid   allowance_used - unused
//
// allowance_used belongs to the month beside it, which only ever moves on.
//
// Every transaction locks the account's row first and the system's, which all
// share, last. Move tokens once in a database transaction: a second move would
// lock another account while it holds the system's row.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Kind is why tokens moved. Kinds are stored for good: add, never rename.
type Kind string

// The kinds of movements.
const (
	Granted  Kind = "grant"  // the operator gave or took back
	SignedUp Kind = "signup" // what a new account begins with
	ToppedUp Kind = "top_up" // the free top-up, claimed
	Settled  Kind = "settle" // a run ended; also where it costs nothing
	Expired  Kind = "expire" // whom the account belonged to is no more
)

const (
	systemPrefix  = "system:"
	systemGrants  = systemPrefix + "grants"
	systemRevenue = systemPrefix + "revenue"
	maxTokens     = 1_000_000_000_000 // in one movement
	maxNote       = 500               // bytes
	allowanceForm = "2006-01"
)

// Balance is what an account has.
type Balance struct {
	// Tokens can be spent now: what is held is taken off already.
	Tokens int64
	// Held is reserved for what is still running.
	Held int64
	// FreeAllowanceLeft is free until the month ends (UTC).
	FreeAllowanceLeft int64
}

// Grant gives tokens to an account, or takes them back where tokens is below
// zero, and says what can then be spent. An account comes into being with its
// first movement. The note is made one clean line and cut to 500 characters.
func Grant(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, kind Kind, note string) (balance int64, err error) {
	if tokens == 0 || tokens < -maxTokens || tokens > maxTokens {
		return 0, fault.New(fault.Invalid, "Tokens are a whole number other than 0, at most 1,000,000,000,000 either way.").On("tokens")
	}
	if err := openAccount(ctx, tx, accountID); err != nil {
		return 0, err
	}
	return moveTokens(ctx, tx, accountID, tokens, kind, note)
}

// Clear takes back all that an account can spend, and says how much that was.
func Clear(ctx context.Context, tx *sqldb.Tx, accountID string, kind Kind, note string) (tokens int64, err error) {
	if err := checkOwned(accountID); err != nil {
		return 0, err
	}
	a, err := lockAccount(ctx, tx, accountID)
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && a.posted == a.held {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("clear account: %w", err)
	}
	tokens = a.posted - a.held
	_, err = moveTokens(ctx, tx, accountID, -tokens, kind, note)
	return tokens, err
}

// Entry is one movement as an account sees it.
type Entry struct {
	ID      string // of the transaction
	Kind    Kind
	Note    string
	RunID   string // of a settlement
	Tokens  int64  // to the account; below zero from it
	Created time.Time
}

// TopUp gives an account the free top-up, once in a window: of any number of
// claims at once, one succeeds. It says what can then be spent.
func TopUp(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, window time.Duration) (balance int64, err error) {
	if tokens < 1 || tokens > maxTokens || window <= 0 {
		return 0, fmt.Errorf("top up: %d tokens each %v", tokens, window)
	}
	if err := openAccount(ctx, tx, accountID); err != nil {
		return 0, err
	}
	claimed, err := claimTopUp(ctx, tx, accountID, window)
	if err != nil {
		return 0, fmt.Errorf("top up: %w", err)
	}
	if !claimed {
		next, _, err := TopUpAt(ctx, tx, accountID, window)
		if err != nil {
			return 0, err
		}
		return 0, fault.New(fault.Forbidden, "This account was topped up already. Try again later.").
			With("reason", "window").After(next.Sub(tx.Now))
	}
	return moveTokens(ctx, tx, accountID, tokens, ToppedUp, "")
}

// TopUpAt says whether an account can claim the top-up now, and from when on it
// can: the zero time where it never has.
func TopUpAt(ctx context.Context, tx *sqldb.Tx, accountID string, window time.Duration) (next time.Time, available bool, err error) {
	last, err := toppedUp(ctx, tx, accountID)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("top up: %w", err)
	}
	if last.IsZero() {
		return time.Time{}, true, nil
	}
	next = last.Add(window)
	return next, !next.After(tx.Now), nil
}

// Balances gives what accounts have, of which each has a monthly allowance
// besides. An account that nothing was moved to yet has that alone.
func Balances(ctx context.Context, tx *sqldb.Tx, ids []string, monthlyAllowance int64) (map[string]Balance, error) {
	all := make(map[string]Balance, len(ids))
	for _, id := range ids {
		all[id] = account{}.balanceAt(tx.Now, monthlyAllowance)
	}
	if len(ids) == 0 {
		return all, nil
	}
	found, err := listAccounts(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("balances: %w", err)
	}
	for _, a := range found {
		all[a.id] = a.balanceAt(tx.Now, monthlyAllowance)
	}
	return all, nil
}

func (a account) balanceAt(now time.Time, monthlyAllowance int64) Balance {
	_, used := a.allowanceAt(now)
	return Balance{Tokens: a.posted - a.held, Held: a.held, FreeAllowanceLeft: max(max(monthlyAllowance, 0)-used, 0)}
}

// allowanceAt is the month that counts, and what was used in it. The month moves
// on but never back: who began just before midnight and waited for somebody who
// began after must not make the new month's allowance whole again.
func (a account) allowanceAt(now time.Time) (month string, used int64) {
	month = now.UTC().Format(allowanceForm)
	if a.allowanceMonth < month {
		return month, 0
	}
	return a.allowanceMonth, a.allowanceUsed
}

// checkOwned refuses what is nobody's account.
func checkOwned(accountID string) error {
	if accountID == "" || strings.HasPrefix(accountID, systemPrefix) {
		return errors.New("ledger: " + accountID + " is nobody's account")
	}
	return nil
}

// openAccount makes the account's row where it is new.
func openAccount(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	if err := checkOwned(accountID); err != nil {
		return err
	}
	if err := insertAccount(ctx, tx, accountID); err != nil {
		return fmt.Errorf("open account: %w", err)
	}
	return nil
}

// moveTokens takes tokens from the system's account to one that is open.
func moveTokens(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, kind Kind, note string) (balance int64, err error) {
	balance, ok, err := postTokens(ctx, tx, accountID, tokens)
	if err != nil {
		return 0, fmt.Errorf("move tokens: %w", err)
	}
	if !ok {
		return 0, fault.New(fault.InsufficientBalance, "The account has fewer tokens than that.").
			With("required", -tokens).With("available", balance)
	}
	m := movement{
		id:      ids.New(),
		kind:    kind,
		note:    sanitize.Line(note, maxNote),
		system:  systemGrants,
		account: accountID,
		tokens:  tokens,
	}
	if _, err := recordMovement(ctx, tx, m); err != nil {
		return 0, fmt.Errorf("move tokens: %w", err)
	}
	if err := bookEntries(ctx, tx, m); err != nil {
		return 0, fmt.Errorf("move tokens: %w", err)
	}
	return balance, nil
}
