package ledger_test

import (
	"context"
	"fmt"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/ledger"
)

// fixture is a database with a person and a tool, so that runs can be inserted.
type fixture struct{ dbtest.Fixture }

func eachFixture(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, ledger.Checks, func(d dbtest.Fixture) {
		d.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ('p', 'p@example.com', 'p@example.com', TRUE, '', 1)`)
		d.Exec(`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('t', 't', 'builtin', '{}', 'h', FALSE, 1, 1)`)
		d.Exec(`INSERT INTO tool_version (hash, definition) VALUES ('h', '{}')`)
		fn(fixture{d})
	})
}

// run is a run that was started.
type run struct {
	id, account string
	hold        ledger.Hold
}

// insert inserts a pending run.
func insert(ctx context.Context, tx *sqldb.Tx, r run) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed, num_results,
			metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month,
			status, stage, attempt, worker, cancel, preview, revision, error_code, error_message, created)
		VALUES ($1, $1, 'p', $2, '', '', '', 't', 'h', '', '{}', '', 1, 1,
			'', '', 1, 1, $3, $4, $5, 'pending', 'queued', 0, '', FALSE, '', 1, '', '', $6)`,
		r.id, r.account, r.hold.Tokens, r.hold.Allowance, r.hold.Month, sqldb.At(tx.Now))
	return err
}

// begin reserves the price of a run and inserts the run.
func (w fixture) begin(id, account string, price, allowance int64) (run, error) {
	r := run{id: id, account: account}
	err := w.Try(func(tx *sqldb.Tx) (err error) {
		if r.hold, err = ledger.Reserve(w.Context(), tx, account, price, allowance); err != nil {
			return err
		}
		return insert(w.Context(), tx, r)
	})
	return r, err
}

func (w fixture) mustBegin(id, account string, price, allowance int64) run {
	w.Helper()
	r, err := w.begin(id, account, price, allowance)
	w.OK(err)
	return r
}

// end settles a run and records its end.
func (w fixture) end(r run, status string, charge int64) (tokens, allowance int64, err error) {
	code := ""
	if status == "failed" {
		code = "ENGINE_FAILED"
	}
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		if tokens, allowance, err = ledger.Settle(w.Context(), tx, r.account, r.id, r.hold, charge); err != nil {
			return err
		}
		n, err := tx.Exec(w.Context(), `
			UPDATE run SET status = $1, stage = NULL, error_code = $2, tokens_charged = $3, allowance_used = $4, finished = $5
			WHERE id = $6 AND status = 'pending'`, status, code, tokens, allowance, sqldb.At(tx.Now), r.id)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d runs of %s", n, r.id)
		}
		return err
	})
	return tokens, allowance, err
}

func (w fixture) mustEnd(r run, status string, charge int64) {
	w.Helper()
	_, _, err := w.end(r, status, charge)
	w.OK(err)
}

func (w fixture) give(account string, tokens int64) {
	w.Helper()
	_, err := grant(w.Context(), w.DB, account, tokens)
	w.OK(err)
}

func (w fixture) balance(account string, allowance int64) ledger.Balance {
	w.Helper()
	return balances(w.T, w.DB, allowance, account)[account]
}

// quoted is the result of Quote.
type quoted struct {
	hold      ledger.Hold
	enough    bool
	available int64
}

func (w fixture) quote(account string, price, allowance int64) (q quoted) {
	w.Helper()
	w.OK(w.DB.Read(w.Context(), func(tx *sqldb.Tx) (err error) {
		q.hold, q.enough, q.available, err = ledger.Quote(w.Context(), tx, account, price, allowance)
		return err
	}))
	return q
}
