package sqldb

import (
	"context"
	"errors"
)

// One returns the only column of the only row of a query. It returns ErrNoRows
// if there is no row.
func One[T any](ctx context.Context, q Querier, query string, args ...any) (value T, err error) {
	err = q.QueryRow(ctx, query, args...).Scan(&value)
	return value, err
}

// Find is One for rows that may be missing: found is false if there is no row,
// and the value is zero.
func Find[T any](ctx context.Context, q Querier, query string, args ...any) (value T, found bool, err error) {
	value, err = One[T](ctx, q, query, args...)
	if errors.Is(err, ErrNoRows) {
		return value, false, nil
	}
	return value, err == nil, err
}

// Exists reports whether a SELECT finds any row.
func Exists(ctx context.Context, q Querier, query string, args ...any) (bool, error) {
	return One[bool](ctx, q, `SELECT EXISTS (`+query+`)`, args...)
}

// Changed runs a writing statement and reports whether it changed any row. It
// shows the result of a conditional UPDATE, or of an INSERT with ON CONFLICT DO
// NOTHING.
func Changed(ctx context.Context, tx *Tx, query string, args ...any) (bool, error) {
	n, err := tx.Exec(ctx, query, args...)
	return n > 0, err
}

// All runs a query and collects the results of scan, one for every row.
func All[T any](ctx context.Context, tx *Tx, query string, args []any, scan func(Scanner) (T, error)) ([]T, error) {
	var all []T
	err := tx.EachRow(ctx, query, args, func(row Scanner) error {
		one, err := scan(row)
		if err == nil {
			all = append(all, one)
		}
		return err
	})
	return all, err
}

// Column scans the only column of a row. It is the scan function of All for
// queries with one column.
func Column[T any](row Scanner) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}
