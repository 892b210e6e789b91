// Package ledger stores the tokens of accounts in double entry.
//
// A transaction moves tokens from one account to another, its entries sum to
// zero, and neither is ever changed. The row of an account has the sum of its
// entries (posted) and the tokens held for runs (held). Tokens that come from
// outside or leave have a system account on the other side, the only kind of
// account that may be below zero.
//
//	system:grants ──grant, signup, top_up──▶ account ──settle──▶ system:revenue
//
// A run holds its price when it is created: first from the free allowance of the
// month, then in tokens. Both are columns of the account's row; no transaction is
// recorded. When the run ends, one settlement charges for the delivered results
// and releases the rest of the hold.
//
//	Reserve   held + tokens                  allowance_used + allowance
//	Settle    held - tokens, posted - paid   allowance_used - unused
//
// allowance_used belongs to the month in allowance_month, which only moves forward.
//
// Every database transaction locks the account's row first and the system
// account's row, which all share, last. Move tokens once in a database
// transaction: a second move would lock another account after the system
// account.
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

// Kind is the reason for a movement of tokens. Kinds are stored: add, never
// rename.
type Kind string

// The kinds of movements.
const (
	Granted  Kind = "grant"  // the operator granted or took back tokens
	SignedUp Kind = "signup" // the first tokens of a new account
	ToppedUp Kind = "top_up" // the free top-up, claimed
	Settled  Kind = "settle" // a run ended; also if it costs nothing
	Expired  Kind = "expire" // the owner of the account was deleted
)

const (
	systemPrefix  = "system:"
	systemGrants  = systemPrefix + "grants"
	systemRevenue = systemPrefix + "revenue"
	maxTokens     = 1_000_000_000_000 // in one movement
	maxNote       = 500               // bytes
	allowanceForm = "2006-01"
)

// Balance is the balance of an account.
type Balance struct {
	// Tokens can be spent now: held tokens are not included.
	Tokens int64
	// Held is held for runs that have not ended.
	Held int64
	// FreeAllowanceLeft can be used for free until the month ends (UTC).
	FreeAllowanceLeft int64
}

// Grant adds tokens to an account, or takes them back if tokens is negative,
// and returns the tokens that can be spent afterwards. The row of an account is
// created with its first movement. The note is sanitized to one line of at most
// 500 bytes.
func Grant(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, kind Kind, note string) (balance int64, err error) {
	if tokens == 0 || tokens < -maxTokens || tokens > maxTokens {
		return 0, fault.New(fault.Invalid, "Tokens are a whole number other than 0, at most 1,000,000,000,000 either way.").On("tokens")
	}
	if err := openAccount(ctx, tx, accountID); err != nil {
		return 0, err
	}
	return moveTokens(ctx, tx, accountID, tokens, kind, note)
}

// Clear takes back all tokens that an account can spend, and returns their
// number.
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

// Entry is a movement of tokens from the view of one account.
type Entry struct {
	ID      string // of the transaction
	Kind    Kind
	Note    string
	RunID   string // of a settlement
	Tokens  int64  // to the account; negative: from it
	Created time.Time
}

// TopUp grants an account the free top-up, once in a window: of several
// concurrent claims, one succeeds. It returns the tokens that can be spent
// afterwards.
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
		return 0, fault.New(fault.Forbidden, "This account has claimed its top-up already. Try again later.").
			With("reason", "window").After(next.Sub(tx.Now))
	}
	return moveTokens(ctx, tx, accountID, tokens, ToppedUp, "")
}

// TopUpAt reports whether an account can claim the top-up now, and the time
// from which it can; the zero time if it has never claimed one.
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

// Balances returns the balances of accounts by id. An account without movements
// has only the monthly allowance.
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

// allowanceAt returns the month that counts and the allowance used in it. The
// month moves forward only: a transaction that began just before midnight and
// waited for one that began after must not reset the allowance of the new
// month.
func (a account) allowanceAt(now time.Time) (month string, used int64) {
	month = now.UTC().Format(allowanceForm)
	if a.allowanceMonth < month {
		return month, 0
	}
	return a.allowanceMonth, a.allowanceUsed
}

// checkOwned refuses ids that do not belong to a person or a team.
func checkOwned(accountID string) error {
	if accountID == "" || strings.HasPrefix(accountID, systemPrefix) {
		return errors.New("ledger: " + accountID + " is not the account of a person or a team")
	}
	return nil
}

// openAccount creates the row of an account if it does not exist.
func openAccount(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	if err := checkOwned(accountID); err != nil {
		return err
	}
	if err := insertAccount(ctx, tx, accountID); err != nil {
		return fmt.Errorf("open account: %w", err)
	}
	return nil
}

// moveTokens moves tokens from the system account to an account that is open.
func moveTokens(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, kind Kind, note string) (balance int64, err error) {
	balance, ok, err := postTokens(ctx, tx, accountID, tokens)
	if err != nil {
		return 0, fmt.Errorf("move tokens: %w", err)
	}
	if !ok {
		return 0, fault.New(fault.InsufficientBalance, "The account has too few tokens.").
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
