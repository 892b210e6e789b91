package ratelimit

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/sqldb"
)

// lockKey locks the key until this transaction ends, so that concurrent callers
// wait, and stores the key's subject.
func lockKey(ctx context.Context, tx *sqldb.Tx, key Key) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO rate_key (key, last, subject) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET last = excluded.last, subject = excluded.subject`, key.Name, sqldb.At(tx.Now), key.Subject)
	return err
}

// oldestOfFull returns the time of the oldest event that keeps the window full.
// The window is full until that event leaves it.
func oldestOfFull(ctx context.Context, tx *sqldb.Tx, key string, w Window) (at time.Time, full bool, err error) {
	oldest, full, err := sqldb.Find[sqldb.Time](ctx, tx, `SELECT at FROM rate_log WHERE key = $1 AND at > $2 ORDER BY at DESC LIMIT 1 OFFSET $3`,
		key, sqldb.At(tx.Now.Add(-w.Span)), int64(w.Max-1))
	return oldest.Time, full, err
}

// countWindow returns the number of events in the window and the time of the
// first.
func countWindow(ctx context.Context, tx *sqldb.Tx, key string, w Window) (n int, first time.Time, err error) {
	var t sqldb.Time
	err = tx.QueryRow(ctx, `SELECT count(*), min(at) FROM rate_log WHERE key = $1 AND at > $2`, key, sqldb.At(tx.Now.Add(-w.Span))).Scan(&n, &t)
	return n, t.Time, err
}

// countSince returns the number of events younger than the span and the time of
// the newest.
func countSince(ctx context.Context, tx *sqldb.Tx, key string, span time.Duration) (n int, last time.Time, err error) {
	var t sqldb.Time
	err = tx.QueryRow(ctx, `SELECT count(*), max(at) FROM rate_log WHERE key = $1 AND at > $2`, key, sqldb.At(tx.Now.Add(-span))).Scan(&n, &t)
	return n, t.Time, err
}

func insertEvent(ctx context.Context, tx *sqldb.Tx, id, key string) error {
	_, err := tx.Exec(ctx, `INSERT INTO rate_log (id, key, at) VALUES ($1, $2, $3)`, id, key, sqldb.At(tx.Now))
	return err
}

// ReturnEvent removes an event that Take recorded, as if it had not happened. An
// event that was swept or returned before is no error.
func ReturnEvent(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM rate_log WHERE id = $1`, id)
	return err
}

// Drop removes the events of a key.
func Drop(ctx context.Context, tx *sqldb.Tx, key Key) error {
	return dropNames(ctx, tx, []string{key.Name})
}

// ForgetSubject removes all counters of a person's ID or of a mail address in
// lower case.
func ForgetSubject(ctx context.Context, tx *sqldb.Tx, subject string) error {
	if subject == "" {
		return errors.New("rate limit: no subject to forget")
	}

	names, err := sqldb.All(ctx, tx, `SELECT key FROM rate_key WHERE subject = $1 AND subject <> '' ORDER BY key`,
		[]any{subject}, sqldb.Column[string])
	if err != nil {
		return err
	}
	return dropNames(ctx, tx, names)
}

func dropNames(ctx context.Context, tx *sqldb.Tx, names []string) error {
	for _, name := range names {
		// The key is deleted first: concurrent callers wait for it until this
		// transaction ends.
		for _, query := range []string{`DELETE FROM rate_key WHERE key = $1`, `DELETE FROM rate_log WHERE key = $1`} {
			if _, err := tx.Exec(ctx, query, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep removes events before a time, which must be further back than any window
// reaches, and under Daily keys events a day before it: at most limit events and
// as many keys. It returns the number of rows that it removed; a number below
// limit means that none are left.
//
// The time of a key is compared again after a wait for the key's lock: the
// holder may have used the key.
func Sweep(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) (removed int64, err error) {
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

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "every rate entry has its key", Query: `
		SELECT 'rate_log ' || r.id FROM rate_log r LEFT JOIN rate_key k ON k.key = r.key WHERE k.key IS NULL`},
}
