package sqldb

import (
	"context"
	"strings"
)

// Guard decides at the beginning of a transaction whether the transaction is
// still allowed. If it returns an error, the transaction ends without any
// change.
//
// A guard reads the rows that the decision depends on with Locking, so that
// they cannot change before the transaction commits.
type Guard func(ctx context.Context, tx *Tx) error

type guardKey struct{}

// WithGuard returns a context in which every transaction of Read and Write
// begins with the guard. Each transaction of a request therefore checks again
// that the request is authorized, and no request handler can forget the check.
func WithGuard(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, g)
}

// withGuardOf returns a function that calls the guard of ctx, if there is one,
// and then fn.
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

// Querier reads single rows. A *Tx locks them until it commits if the query
// ends with the result of Locking. A *DB never locks rows.
type Querier interface {
	QueryRow(ctx context.Context, query string, args ...any) Row
	// Locking returns the end of a SELECT that locks its rows. Each clause is a
	// PostgreSQL locking clause without FOR, such as "UPDATE OF p" or "SHARE OF
	// d". Rows are locked in the order of the clauses.
	Locking(clauses ...string) string
}

// Locking returns "": a query outside a transaction locks nothing.
func (db *DB) Locking(...string) string { return "" }

// Locking implements Querier. It returns "" in read-only transactions and on
// SQLite, which has only one writer at a time.
func (tx *Tx) Locking(clauses ...string) string {
	if tx.ReadOnly || tx.Dialect.ForUpdate == "" {
		return ""
	}
	return " FOR " + strings.Join(clauses, " FOR ")
}
