package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Key records which run was created by the request with an idempotency key.
type Key struct {
	Fingerprint string // hash of the request
	RunID       string
	Created     time.Time
}

// FindKey returns the record of a person's idempotency key, or nil if there is
// none or it is older than lifetime.
func FindKey(ctx context.Context, tx *sqldb.Tx, personID, key string, lifetime time.Duration) (*Key, error) {
	row := tx.QueryRow(ctx, `SELECT fingerprint, run_id, created FROM idempotency WHERE person_id = $1 AND key = $2`, personID, key)
	return scanKey(tx, row, lifetime)
}

// FindNewestKey returns the record of the person's key that begins with prefix
// and was stored last. It returns nil if there is none, or it is older than
// lifetime. The rest of the keys are ids of runs, which increase with time; in
// every collation they sort before the letter z.
func FindNewestKey(ctx context.Context, tx *sqldb.Tx, personID, prefix string, lifetime time.Duration) (*Key, error) {
	row := tx.QueryRow(ctx, `
		SELECT fingerprint, run_id, created FROM idempotency
		WHERE person_id = $1 AND key >= $2 AND key < $3 ORDER BY key DESC LIMIT 1`, personID, prefix, prefix+"z")
	return scanKey(tx, row, lifetime)
}

// scanKey reads the record of a key. It returns nil if there is none or it is
// older than lifetime.
func scanKey(tx *sqldb.Tx, row sqldb.Row, lifetime time.Duration) (*Key, error) {
	var k Key
	var created sqldb.Time
	err := row.Scan(&k.Fingerprint, &k.RunID, &created)
	if errors.Is(err, sqldb.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find idempotency key: %w", err)
	}

	k.Created = created.Time
	if !k.Created.Add(lifetime).After(tx.Now) {
		return nil, nil
	}
	return &k, nil
}

// StoreKey records the run of an idempotency key. It replaces an expired record
// of the same key. The column response stays empty, because the response can be
// derived from the run.
func StoreKey(ctx context.Context, tx *sqldb.Tx, personID, key string, k Key) error {
	if err := tx.DeferExec(ctx, `DELETE FROM idempotency WHERE person_id = $1 AND key = $2`, []any{personID, key}, nil); err != nil {
		return err
	}
	return tx.DeferExec(ctx, `INSERT INTO idempotency (person_id, key, fingerprint, run_id, response, created) VALUES ($1, $2, $3, $4, '', $5)`,
		[]any{personID, key, k.Fingerprint, k.RunID, sqldb.At(tx.Now)}, nil)
}

const expiryBatch = 1000 // maximum number of rows of each table to delete in one transaction

// DeleteExpired deletes idempotency keys that are older than lifetime, and
// polling records of runs that have ended. On PostgreSQL such records can
// remain if they were written while the end of the run was being committed. The
// rows are deleted in batches.
func DeleteExpired(ctx context.Context, db *sqldb.DB, lifetime time.Duration) error {
	for {
		var n int64
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			keys, err := deleteKeysBefore(ctx, tx, tx.Now.Add(-lifetime), expiryBatch)
			if err != nil {
				return err
			}
			polls, err := deleteEndedPolls(ctx, tx, expiryBatch)
			n = max(keys, polls)
			return err
		})
		if err != nil || n < expiryBatch {
			return err
		}
	}
}

func deleteKeysBefore(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) (int64, error) {
	return tx.Exec(ctx, `
		DELETE FROM idempotency WHERE run_id IN (SELECT run_id FROM idempotency WHERE created < $1 LIMIT $2)`, sqldb.At(before), int64(limit))
}
