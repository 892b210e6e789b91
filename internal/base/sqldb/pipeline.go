package sqldb

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Deferred statements of a transaction wait on PostgreSQL until the next
// statement that returns a result at once, or the commit, and are sent together
// with it: one round trip instead of several. The server executes them in order,
// each with a snapshot of its own, so locks and results are the same as without
// the delay. An error comes later, as the error of the statement with which they
// were sent, and ends the transaction. On SQLite, which has no round trips,
// statements are never deferred.
//
// Only statements whose error nobody handles can be deferred, and nothing that
// depends on their effect may be decided in Go before another statement has been
// sent.

// deferred is a statement that waits.
type deferred struct {
	query string
	args  []any
	read  func(pgx.BatchResults) error // reads the result
}

// DeferExec runs a statement before the next one, or before the commit. check,
// which may be nil, gets the number of affected rows. If it returns an error, the
// transaction fails.
func (tx *Tx) DeferExec(ctx context.Context, query string, args []any, check func(changed int64) error) error {
	if check == nil {
		check = func(int64) error { return nil }
	}
	if tx.pgx == nil {
		changed, err := tx.Exec(ctx, query, args...)
		if err != nil {
			return err
		}
		return check(changed)
	}
	tx.traceStatement(query, args)
	tx.deferred = append(tx.deferred, deferred{query, args, func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		if err != nil {
			return err
		}
		return check(tag.RowsAffected())
	}})
	return nil
}

// DeferQueryRow runs a query for at most one row before the next statement, or
// before the commit. read scans the row. If it returns an error, the transaction
// fails.
func (tx *Tx) DeferQueryRow(ctx context.Context, query string, args []any, read func(Row) error) error {
	if tx.pgx == nil {
		return read(tx.QueryRow(ctx, query, args...))
	}
	tx.traceStatement(query, args)
	tx.deferred = append(tx.deferred, deferred{query, args, func(results pgx.BatchResults) error {
		return read(Row{from: results.QueryRow()})
	}})
	return nil
}

// Flush sends the deferred statements. Exec, QueryRow, EachRow and the commit do
// so by themselves.
func (tx *Tx) Flush(ctx context.Context) error {
	if len(tx.deferred) == 0 {
		return nil
	}
	results, err := tx.sendDeferred(ctx, "", nil)
	if err != nil {
		return err
	}
	return results.Close()
}

// sendDeferred sends the deferred statements and then a query, unless it is "",
// in one round trip. It reads the results of the deferred statements; the caller
// reads the result of the query and closes the results.
func (tx *Tx) sendDeferred(ctx context.Context, query string, args []any) (pgx.BatchResults, error) {
	all := tx.deferred
	tx.deferred = nil
	batch := &pgx.Batch{}
	for _, d := range all {
		batch.Queue(d.query, d.args...)
	}
	if query != "" {
		batch.Queue(query, args...)
	}
	results := tx.pgx.SendBatch(ctx, batch)
	for _, d := range all {
		if err := d.read(results); err != nil {
			_ = results.Close() // it returns the same error, or one that follows from it
			return nil, err
		}
	}
	return results, nil
}

// batchRow is the row of a query that was sent together with deferred
// statements.
type batchRow struct{ results pgx.BatchResults }

// Scan implements Scanner.
func (r batchRow) Scan(dest ...any) error {
	err := r.results.QueryRow().Scan(dest...)
	if closed := r.results.Close(); err == nil {
		err = closed
	}
	return err
}

func (tx *Tx) traceStatement(query string, args []any) {
	if tx.trace != nil {
		tx.trace(query, args)
	}
}
