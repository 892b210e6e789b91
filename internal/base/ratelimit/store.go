package ratelimit

import (
	"context"
	"errors"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
)

// lockKey locks the key until the transaction ends, so that concurrent callers
// wait, and stores the key's subject. It does so together with the next
// statement, which must be the one that reads the events.
func lockKey(ctx context.Context, tx *sqldb.Tx, key Key) error {
	return tx.DeferExec(ctx, `
		INSERT INTO rate_key (key, last, subject) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET last = excluded.last, subject = excluded.subject`, []any{key.Name, sqldb.At(tx.Now), key.Subject}, nil)
}

// oldestOfFull reports whether the window is full. If it is, at is the time of
// the event that must leave the window before the next one is admitted.
func oldestOfFull(ctx context.Context, tx *sqldb.Tx, key string, w Window) (at time.Time, full bool, err error) {
	oldest, full, err := sqldb.Find[sqldb.Time](ctx, tx, `SELECT at FROM rate_log WHERE key = $1 AND at > $2 ORDER BY at DESC LIMIT 1 OFFSET $3`,
		key, sqldb.At(tx.Now.Add(-w.Span)), int64(w.Max-1))
	return oldest.Time, full, err
}

// windowCount is the number of events in a window and the time of the oldest
// one.
type windowCount struct {
	n     int
	first sqldb.Time
}

// countWindows counts the events in each of the windows.
func countWindows(ctx context.Context, tx *sqldb.Tx, key string, windows []Window) ([]windowCount, error) {
	counts := make([]windowCount, len(windows))
	args := sqldb.Args{key}
	var columns []string
	var dest []any
	longest := windows[0].Span
	for i, w := range windows {
		inside := `CASE WHEN at > ` + args.Add(sqldb.At(tx.Now.Add(-w.Span))) + ` THEN at END`
		columns = append(columns, `count(`+inside+`), min(`+inside+`)`)
		dest = append(dest, &counts[i].n, &counts[i].first)
		longest = max(longest, w.Span)
	}
	query := `SELECT ` + strings.Join(columns, `, `) + ` FROM rate_log WHERE key = $1 AND at > ` + args.Add(sqldb.At(tx.Now.Add(-longest)))
	err := tx.QueryRow(ctx, query, args...).Scan(dest...)
	return counts, err
}

// countSince returns the number of events younger than span and the time of the
// newest one.
func countSince(ctx context.Context, tx *sqldb.Tx, key string, span time.Duration) (n int, last time.Time, err error) {
	var t sqldb.Time
	err = tx.QueryRow(ctx, `SELECT count(*), max(at) FROM rate_log WHERE key = $1 AND at > $2`, key, sqldb.At(tx.Now.Add(-span))).Scan(&n, &t)
	return n, t.Time, err
}

func insertEvent(ctx context.Context, tx *sqldb.Tx, id, key string) error {
	return tx.DeferExec(ctx, `INSERT INTO rate_log (id, key, at) VALUES ($1, $2, $3)`, []any{id, key, sqldb.At(tx.Now)}, nil)
}

// ReturnEvent deletes an event that Take recorded, so that it no longer counts.
// It returns no error if the event was already deleted.
func ReturnEvent(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM rate_log WHERE id = $1`, id)
	return err
}

// Drop deletes a key and its events.
func Drop(ctx context.Context, tx *sqldb.Tx, key Key) error {
	return dropNames(ctx, tx, []string{key.Name})
}

// ForgetSubject deletes all counters of a subject: the id of a person, or an
// e-mail address in lower case.
func ForgetSubject(ctx context.Context, tx *sqldb.Tx, subject string) error {
	if subject == "" {
		return errors.New("rate limit: cannot delete the counters of an empty subject")
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
		// The key is deleted first, because deleting it locks it: concurrent
		// callers wait until this transaction ends.
		for _, query := range []string{`DELETE FROM rate_key WHERE key = $1`, `DELETE FROM rate_log WHERE key = $1`} {
			if _, err := tx.Exec(ctx, query, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep deletes the events that are older than the time before; events of Daily
// keys are kept for one day more. The windows of all other keys must be short
// enough that such events no longer count. Sweep deletes at most limit events
// and limit keys, and returns the number of deleted rows. If that is less than
// limit, nothing is left to delete.
//
// The condition on the time of a key is repeated outside the subquery, because
// the statement may wait for a lock on the key, and the transaction that held
// the lock may have used the key.
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

// Checks are the invariants of the rate limit tables.
var Checks = []sqldb.Check{
	{Name: "every row of rate_log has a row in rate_key", Query: `
		SELECT 'rate_log ' || r.id FROM rate_log r LEFT JOIN rate_key k ON k.key = r.key WHERE k.key IS NULL`},
}
