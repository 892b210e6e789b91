package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Key records which run the create with an idempotency key made.
type Key struct {
	Fingerprint string // a hash of the request
	RunID       string
	Created     time.Time
}

// FindKey returns the record of a person's idempotency key, nil if there is
// none or it is older than its lifetime.
func FindKey(ctx context.Context, tx *sqldb.Tx, personID, key string, lifetime time.Duration) (*Key, error) {
	var k Key
	var created sqldb.Time
	err := tx.QueryRow(ctx, `SELECT fingerprint, run_id, created FROM idempotency WHERE person_id = $1 AND key = $2`, personID, key).
		Scan(&k.Fingerprint, &k.RunID, &created)
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

// StoreKey records the run of an idempotency key, in place of one that is older
// than its lifetime. The column response is empty: the answer follows from the
// run.
func StoreKey(ctx context.Context, tx *sqldb.Tx, personID, key string, k Key) error {
	if _, err := tx.Exec(ctx, `DELETE FROM idempotency WHERE person_id = $1 AND key = $2`, personID, key); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO idempotency (person_id, key, fingerprint, run_id, response, created) VALUES ($1, $2, $3, $4, '', $5)`,
		personID, key, k.Fingerprint, k.RunID, sqldb.At(tx.Now))
	return err
}

const expiryBatch = 1000 // rows of each table in one transaction

// DeleteExpired deletes idempotency keys that are older than their lifetime, and polls
// of runs that have ended: on PostgreSQL a poll can be recorded while the end is
// being committed. It works in batches.
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
