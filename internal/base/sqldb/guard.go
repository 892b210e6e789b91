package sqldb

import (
	"context"
	"strings"
)

// Guard decides at the beginning of a transaction whether its work is still
// allowed. Its error ends the transaction before anything was changed.
//
// Rows that the decision depends on are read with Locking, so that they cannot
// change between the decision and the commit.
type Guard func(ctx context.Context, tx *Tx) error

type guardKey struct{}

// WithGuard returns a context in which every transaction of Read and Write
// begins with the guard. This way each transaction of a request authorizes the
// request again, and no handler can forget it.
func WithGuard(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, g)
}

// withGuardOf returns fn preceded by the guard of ctx, if there is one.
func withGuardOf(ctx context.Context, fn func(*Tx) error) func(*Tx) error {
	guard, ok := ctx.Value(guardKey{}).(Guard)
	if !ok {
		return fn
	}
	return func(tx *Tx) error {
		if err := guard(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	}
}

// Querier reads single rows. A *Tx locks them until the commit if the query has
// Locking clauses; a *DB locks nothing.
type Querier interface {
	QueryRow(ctx context.Context, query string, args ...any) Row
	// Locking returns the clauses that lock the rows of a SELECT, such as
	// "UPDATE OF p" or "SHARE OF d", in the order in which rows are locked.
	Locking(clauses ...string) string
}

// Locking is empty: a query outside a transaction locks nothing.
func (db *DB) Locking(...string) string { return "" }

// Locking is empty on SQLite, which has one writer at a time, and in
// transactions that only read.
func (tx *Tx) Locking(clauses ...string) string {
	if tx.ReadOnly || tx.Dialect.ForUpdate == "" {
		return ""
	}
	return " FOR " + strings.Join(clauses, " FOR ")
}
