package ratelimit

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// lock makes everyone else who takes the key wait until this transaction ends.
// The row is there for that only.
func lock(ctx context.Context, tx *sqldb.Tx, key string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO rate_key (key, last) VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET last = excluded.last`, key, sqldb.At(tx.Now))
	return err
}

// newest gives the oldest of the newest w.Most rows if all of them are in the
// window, which is full until that one leaves it.
func newest(ctx context.Context, tx *sqldb.Tx, key string, w Window) (at time.Time, full bool, err error) {
	oldest, full, err := sqldb.Find[sqldb.Time](ctx, tx, `SELECT at FROM rate_log WHERE key = $1 AND at > $2 ORDER BY at DESC LIMIT 1 OFFSET $3`,
		key, sqldb.At(tx.Now.Add(-w.Span)), int64(w.Most-1))
	return oldest.Time, full, err
}

// count gives how many rows are in the window, and the time of the first.
func count(ctx context.Context, tx *sqldb.Tx, key string, w Window) (n int, first time.Time, err error) {
	var t sqldb.Time
	err = tx.QueryRow(ctx, `SELECT count(*), min(at) FROM rate_log WHERE key = $1 AND at > $2`, key, sqldb.At(tx.Now.Add(-w.Span))).Scan(&n, &t)
	return n, t.Time, err
}

// latest gives how many rows are younger than the span, and the time of the
// newest.
func latest(ctx context.Context, tx *sqldb.Tx, key string, span time.Duration) (n int, last time.Time, err error) {
	var t sqldb.Time
	err = tx.QueryRow(ctx, `SELECT count(*), max(at) FROM rate_log WHERE key = $1 AND at > $2`, key, sqldb.At(tx.Now.Add(-span))).Scan(&n, &t)
	return n, t.Time, err
}

func keysUnder(ctx context.Context, tx *sqldb.Tx, prefix string) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT key FROM rate_key WHERE substr(key, 1, length($1)) = $1 ORDER BY key`,
		[]any{prefix}, sqldb.Column[string])
}

func insert(ctx context.Context, tx *sqldb.Tx, id, key string) error {
	_, err := tx.Exec(ctx, `INSERT INTO rate_log (id, key, at) VALUES ($1, $2, $3)`, id, key, sqldb.At(tx.Now))
	return err
}

func remove(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM rate_log WHERE id = $1`, id)
	return err
}

func drop(ctx context.Context, tx *sqldb.Tx, keys []string) error {
	for _, key := range keys {
		// The key first: whoever takes it now waits until we are done.
		for _, query := range []string{`DELETE FROM rate_key WHERE key = $1`, `DELETE FROM rate_log WHERE key = $1`} {
			if _, err := tx.Exec(ctx, query, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep looks at a key's time again after it waited for whoever holds the key:
// they may have used it just now.
func sweep(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) (int64, error) {
	rows, err := tx.Exec(ctx, `DELETE FROM rate_log WHERE id IN (SELECT id FROM rate_log WHERE at < $1 AND (key NOT LIKE '`+Daily+`%' OR at < $3) LIMIT $2)`,
		sqldb.At(before), int64(limit), sqldb.At(before.Add(-24*time.Hour)))
	if err != nil {
		return 0, err
	}
	keys, err := tx.Exec(ctx, `
		DELETE FROM rate_key WHERE last < $1 AND key IN (
			SELECT k.key FROM rate_key k WHERE k.last < $1 AND NOT EXISTS (SELECT 1 FROM rate_log r WHERE r.key = k.key)
			ORDER BY k.last LIMIT $2)`,
		sqldb.At(before), int64(limit))
	return rows + keys, err
}

// Checks are the invariants of this package. Which windows a key has, only
// its user knows.
var Checks = []sqldb.Check{
	{Name: "every rate entry has its key", Query: `
		SELECT 'rate_log ' || r.id FROM rate_log r LEFT JOIN rate_key k ON k.key = r.key WHERE k.key IS NULL`},
}
