// Package ledger records the tokens of accounts with double-entry bookkeeping.
//
// A ledger transaction moves tokens from one account to another. It consists of
// entries that sum to zero. Transactions and entries are never changed. The row
// of an account contains the sum of its entries (posted) and the number of
// tokens reserved for runs (held). Granted tokens come from a system account,
// and spent tokens go to another system account. Only system accounts can have
// a negative balance.
//
//	system:grants ──grant, signup, top_up──▶ account ──settle──▶ system:revenue
//
// When a run is created, its price is held, that is, reserved: first from the
// free allowance of the month, then in tokens. A hold only changes columns of
// the account's row; it records no ledger transaction. When the run ends, one
// ledger transaction charges for the delivered results and releases the unused
// part of the hold.
//
//	Reserve   held + tokens                  allowance_used + allowance
//	Settle    held - tokens, posted - paid   allowance_used - unused
//
// The column allowance_used refers to the month in allowance_month, which is
// never set back to an earlier month.
//
// Every database transaction locks the account's row first and the row of the
// system account last, because all accounts share the system account. A
// database transaction must not move tokens twice: the second move would lock
// another account after the system account, and two such transactions could
// deadlock.
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

// Kind is the reason for a ledger transaction. Kinds are stored in the
// database, so existing ones must not be renamed.
type Kind string

// The kinds of ledger transactions.
const (
	Granted  Kind = "grant"  // the operator granted or took back tokens
	SignedUp Kind = "signup" // the first tokens of a new account
	ToppedUp Kind = "top_up" // the account claimed its free top-up
	Settled  Kind = "settle" // a run ended, even if it costs nothing
	Expired  Kind = "expire" // the owner of the account was deleted
)

const (
	systemPrefix  = "system:"
	systemGrants  = systemPrefix + "grants"
	systemRevenue = systemPrefix + "revenue"
	maxTokens     = 1_000_000_000_000 // maximum number of tokens in one ledger transaction
	maxNote       = 500               // maximum length of a note, in bytes
	allowanceForm = "2006-01"
)

// Balance is an account's tokens and free allowance.
type Balance struct {
	// Tokens is the number of tokens that can be spent now. Held tokens are not
	// included.
	Tokens int64
	// Held is the number of tokens reserved for runs that have not ended.
	Held int64
	// FreeAllowanceLeft is the number of tokens that the account can still use
	// for free before the month ends (in UTC).
	FreeAllowanceLeft int64
}

// Grant adds tokens to an account, or takes them back if tokens is negative,
// and returns the number of tokens that can be spent afterwards. It creates the
// account's row if there is none. The note is sanitized to one line of at most
// 500 bytes.
func Grant(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, kind Kind, note string) (balance int64, err error) {
	_, balance, err = grantTokens(ctx, tx, accountID, tokens, kind, note)
	return balance, err
}

// grantTokens is Grant. It also returns the id of the ledger transaction.
func grantTokens(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, kind Kind, note string) (id string, balance int64, err error) {
	if tokens == 0 || tokens < -maxTokens || tokens > maxTokens {
		return "", 0, fault.New(fault.Invalid, "Must be a whole number from -1,000,000,000,000 to 1,000,000,000,000 other than 0.").On("tokens")
	}
	if err := openAccount(ctx, tx, accountID); err != nil {
		return "", 0, err
	}
	return moveTokens(ctx, tx, accountID, tokens, kind, note)
}

// Clear takes back all tokens that an account can spend, and returns their
// number. Tokens reserved for runs remain.
func Clear(ctx context.Context, tx *sqldb.Tx, accountID string, kind Kind, note string) (tokens int64, err error) {
	if err := checkOwned(accountID); err != nil {
		return 0, err
	}
	a, err := lockAccount(ctx, tx, accountID)
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && a.posted == a.held {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remove the tokens of an account: %w", err)
	}
	tokens = a.posted - a.held
	_, _, err = moveTokens(ctx, tx, accountID, -tokens, kind, note)
	return tokens, err
}

// Entry is one side of a ledger transaction: the tokens that it added to or
// subtracted from one account.
type Entry struct {
	ID      string // id of the transaction
	Kind    Kind
	Note    string
	RunID   string // id of the run that was settled, or ""
	Tokens  int64  // positive if the account received tokens
	Created time.Time
}

// TopUp grants an account the free top-up, at most once per window, even if
// several claims are concurrent. It returns the number of tokens that can be
// spent afterwards.
func TopUp(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, window time.Duration) (balance int64, err error) {
	if tokens < 1 || tokens > maxTokens || window <= 0 {
		return 0, fmt.Errorf("top up: invalid amount or window: %d tokens per %v", tokens, window)
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
		return 0, fault.New(fault.Forbidden, "This account has already claimed its top-up. Try again later.").
			With("reason", "window").After(next.Sub(tx.Now))
	}
	_, balance, err = moveTokens(ctx, tx, accountID, tokens, ToppedUp, "")
	return balance, err
}

// TopUpAt reports whether an account can claim the free top-up now, and the
// earliest time at which it can. The time is zero if the account has never
// claimed a top-up.
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

// Balances returns the balances of accounts, keyed by account id. An account
// without ledger transactions has only the monthly allowance.
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
		return nil, fmt.Errorf("read balances: %w", err)
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

// allowanceAt returns the current month and the allowance used in it. The month
// is never earlier than the stored month: a database transaction that began
// before the end of a month may wait for a transaction that began after it, and
// must not reset the allowance of the new month.
func (a account) allowanceAt(now time.Time) (month string, used int64) {
	month = now.UTC().Format(allowanceForm)
	if a.allowanceMonth < month {
		return month, 0
	}
	return a.allowanceMonth, a.allowanceUsed
}

// checkOwned returns an error if accountID is empty or the id of a system
// account.
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

// moveTokens moves tokens from a system account to an account whose row exists,
// or back if tokens is negative. It returns the id of the ledger transaction,
// and the number of tokens that can be spent afterwards.
func moveTokens(ctx context.Context, tx *sqldb.Tx, accountID string, tokens int64, kind Kind, note string) (id string, balance int64, err error) {
	balance, ok, err := postTokens(ctx, tx, accountID, tokens)
	if err != nil {
		return "", 0, fmt.Errorf("move tokens: %w", err)
	}
	if !ok {
		return "", 0, fault.New(fault.InsufficientBalance, "The account does not have enough tokens.").
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
		return "", 0, fmt.Errorf("move tokens: %w", err)
	}
	if err := bookEntries(ctx, tx, m); err != nil {
		return "", 0, fmt.Errorf("move tokens: %w", err)
	}
	return m.id, balance, nil
}
