package run

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/sqldb"
)

// RecordPoll records that a client with the given credential polls a pending
// run now. early is 0 if PollAfter has passed since the previous poll.
// Otherwise it is the number of early polls of this credential, including this
// one. For the credential that created the run, the creation counts as the
// first poll.
func RecordPoll(ctx context.Context, tx *sqldb.Tx, r Run, personID, credential, credentialID string) (early int64, err error) {
	dueSince := tx.Now.Add(-r.PollAfter)
	createdIt := credential == r.Credential && credentialID == r.CredentialID
	if !createdIt || !r.Created.After(dueSince) {
		onTime, err := recordTimelyPoll(ctx, tx, r.ID, personID, credential, credentialID, dueSince)
		if err != nil || onTime {
			return 0, err
		}
	}
	return recordEarlyPoll(ctx, tx, r.ID, personID, credential, credentialID)
}

// recordTimelyPoll records a poll, unless the credential has already polled the
// run after dueSince. Of several concurrent polls only one is recorded.
func recordTimelyPoll(ctx context.Context, tx *sqldb.Tx, runID, personID, credential, credentialID string, dueSince time.Time) (recorded bool, err error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO run_poll (run_id, credential, credential_id, person_id, answered, early)
		SELECT id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), 0 FROM run WHERE id = $1 AND status = 'pending'
		ON CONFLICT (run_id, credential, credential_id) DO UPDATE SET answered = excluded.answered WHERE run_poll.answered <= $6`,
		runID, credential, credentialID, personID, sqldb.At(tx.Now), sqldb.At(dueSince))
	return n == 1, err
}

// recordEarlyPoll increments the number of early polls and returns it. It
// returns 0 if the run has ended in the meantime.
func recordEarlyPoll(ctx context.Context, tx *sqldb.Tx, runID, personID, credential, credentialID string) (early int64, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO run_poll (run_id, credential, credential_id, person_id, answered, early)
		SELECT id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), 1 FROM run WHERE id = $1 AND status = 'pending'
		ON CONFLICT (run_id, credential, credential_id) DO UPDATE SET answered = excluded.answered, early = run_poll.early + 1
		RETURNING early`,
		runID, credential, credentialID, personID, sqldb.At(tx.Now)).Scan(&early)
	if errors.Is(err, sqldb.ErrNoRows) {
		return 0, nil
	}
	return early, err
}

func deletePolls(ctx context.Context, tx *sqldb.Tx, runID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM run_poll WHERE run_id = $1`, runID)
	return err
}

// deleteEndedPolls deletes polling records of runs that have ended. CROSS JOIN
// makes SQLite begin with the polling records, which are few; it would otherwise
// go through all runs.
func deleteEndedPolls(ctx context.Context, tx *sqldb.Tx, limit int) (int64, error) {
	return tx.Exec(ctx, `
		DELETE FROM run_poll WHERE run_id IN (
			SELECT p.run_id FROM run_poll p CROSS JOIN run r WHERE r.id = p.run_id AND r.status <> 'pending' LIMIT $1)`, int64(limit))
}
