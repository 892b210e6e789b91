package sqldb

import (
	"context"
	"errors"
)

// One runs a query with one column and at most one row, and returns the value.
// It returns ErrNoRows if there is no row.
func One[T any](ctx context.Context, q Querier, query string, args ...any) (value T, err error) {
	err = q.QueryRow(ctx, query, args...).Scan(&value)
	return value, err
}

// Find is like One, but a missing row is not an error: then found is false, and
// value is zero.
func Find[T any](ctx context.Context, q Querier, query string, args ...any) (value T, found bool, err error) {
	value, err = One[T](ctx, q, query, args...)
	if errors.Is(err, ErrNoRows) {
		return value, false, nil
	}
	return value, err == nil, err
}

// Exists reports whether a SELECT returns any row.
func Exists(ctx context.Context, q Querier, query string, args ...any) (bool, error) {
	return One[bool](ctx, q, `SELECT EXISTS (`+query+`)`, args...)
}

// Changed runs a statement and reports whether it changed any row. It is for
// conditional updates and for INSERT with ON CONFLICT DO NOTHING.
func Changed(ctx context.Context, tx *Tx, query string, args ...any) (bool, error) {
	n, err := tx.Exec(ctx, query, args...)
	return n > 0, err
}

// All runs a query and returns the results of calling scan for each row, in
// order.
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

// Map runs a query with two columns and returns the values of the second by
// those of the first.
func Map[K comparable, V any](ctx context.Context, tx *Tx, query string, args []any) (map[K]V, error) {
	all := map[K]V{}
	err := tx.EachRow(ctx, query, args, func(row Scanner) error {
		var key K
		var value V
		err := row.Scan(&key, &value)
		all[key] = value
		return err
	})
	return all, err
}

// Column returns the only column of a row. It is the scan function for All if
// the query has one column.
func Column[T any](row Scanner) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}
