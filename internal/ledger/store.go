package ledger

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"atelier/internal/sqldb"
)

func insertAccount(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ($1, 0, 0, '', 0)
		ON CONFLICT (id) DO NOTHING`, id)
	return err
}

// post adds tokens to the account, or takes them, unless that leaves it below
// zero. The balance is what can be spent then, or could be all along.
func post(ctx context.Context, tx *sqldb.Tx, id string, tokens int64) (balance int64, ok bool, err error) {
	err = tx.QueryRow(ctx, `
		UPDATE ledger_account SET posted = posted + $1 WHERE id = $2 AND posted - held + $1 >= 0
		RETURNING posted - held`, tokens, id).Scan(&balance)
	if !errors.Is(err, sqldb.ErrNoRows) {
		return balance, err == nil, err
	}
	err = tx.QueryRow(ctx, `SELECT posted - held FROM ledger_account WHERE id = $1`, id).Scan(&balance)
	return balance, false, err
}

// movement is a transaction between a system account and another.
type movement struct {
	id       string
	kind     Kind
	note     string
	from, to string
	tokens   int64
}

// book writes down what post has done to m.to, and does the other side. It
// comes to the system's row last: everybody waits there.
func book(ctx context.Context, tx *sqldb.Tx, m movement) error {
	if _, err := tx.Exec(ctx, `INSERT INTO ledger_transaction (id, kind, note, created) VALUES ($1, $2, $3, $4)`,
		m.id, string(m.kind), m.note, sqldb.At(tx.Now)); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ($1, $2, 0, '', 0)
		ON CONFLICT (id) DO UPDATE SET posted = ledger_account.posted + excluded.posted`, m.from, -m.tokens); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO ledger_entry (transaction_id, account_id, amount) VALUES ($1, $2, $3), ($1, $4, $5)`,
		m.id, m.to, m.tokens, m.from, -m.tokens)
	return err
}

// claimTopUp marks the account as topped up now unless it was in the window.
func claimTopUp(ctx context.Context, tx *sqldb.Tx, id string, window time.Duration) (claimed bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE ledger_account SET topped_up = $1 WHERE id = $2 AND (topped_up IS NULL OR topped_up <= $3)`,
		sqldb.At(tx.Now), id, sqldb.At(tx.Now.Add(-window)))
	return n == 1, err
}

func toppedUp(ctx context.Context, tx *sqldb.Tx, id string) (time.Time, error) {
	var at sqldb.Time
	err := tx.QueryRow(ctx, `SELECT topped_up FROM ledger_account WHERE id = $1`, id).Scan(&at)
	if errors.Is(err, sqldb.ErrNoRows) {
		return time.Time{}, nil
	}
	return at.Time, err
}

// account is a row of ledger_account.
type account struct {
	id             string
	posted, held   int64
	allowanceMonth string
	allowanceUsed  int64
}

func accounts(ctx context.Context, tx *sqldb.Tx, ids []string) ([]account, error) {
	places, args := make([]string, len(ids)), make([]any, len(ids))
	for i, id := range ids {
		places[i], args[i] = `$`+strconv.Itoa(i+1), id
	}
	return sqldb.All(ctx, tx, `
		SELECT id, posted, held, allowance_month, allowance_used FROM ledger_account
		WHERE id IN (`+strings.Join(places, `, `)+`)`, args, func(s sqldb.Scanner) (a account, err error) {
		err = s.Scan(&a.id, &a.posted, &a.held, &a.allowanceMonth, &a.allowanceUsed)
		return a, err
	})
}

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "the entries of a transaction sum to zero", Query: `
		SELECT 'ledger_transaction ' || t.id FROM ledger_transaction t LEFT JOIN ledger_entry e ON e.transaction_id = t.id
		GROUP BY t.id HAVING count(e.account_id) < 2 OR sum(e.amount) <> 0`},
	{Name: "all entries sum to zero", Query: `
		SELECT 'ledger_entry: the sum is ' || CAST(sum(amount) AS TEXT) FROM ledger_entry HAVING sum(amount) <> 0`},
	{Name: "an account has the sum of its entries", Query: `
		SELECT 'ledger_account ' || a.id FROM ledger_account a LEFT JOIN ledger_entry e ON e.account_id = a.id
		GROUP BY a.id, a.posted HAVING a.posted <> coalesce(sum(e.amount), 0)`},
	{Name: "no account holds less than nothing", Query: `
		SELECT 'ledger_account ' || id FROM ledger_account WHERE held < 0`},
	{Name: "no account but the system's is below zero", Query: `
		SELECT 'ledger_account ' || id FROM ledger_account WHERE posted - held < 0 AND id NOT LIKE '` + systemPrefix + `%'`},
}
