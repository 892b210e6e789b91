package run

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// Revision identifies a state of a run, for clients that follow an account.
type Revision struct {
	AccountID string
	ID        string
	Number    int64 // Run.Revision
	IsQueued  bool
	IsEnded   bool
}

func scanRevision(row sqldb.Scanner) (r Revision, err error) {
	var stage *string
	err = row.Scan(&r.AccountID, &r.ID, &r.Number, &stage)
	r.IsEnded = stage == nil
	r.IsQueued = stage != nil && State(*stage) == Queued
	return r, err
}

// revisionColumns are the columns that scanRevision reads. The revision of a flow
// includes those of its steps, so that it grows with everything that happens in
// the flow.
const revisionColumns = `account_id, id, revision + CASE WHEN engine = 'flow' THEN coalesce((
	SELECT CAST(sum(c.revision) AS BIGINT) FROM flow_step s JOIN run c ON c.id = s.run_id WHERE s.flow_id = run.id AND NOT s.reused), 0) ELSE 0 END, stage`

// PendingRevisions returns the revisions of all runs of the accounts that have
// not ended, oldest first. There must be at least one account.
func PendingRevisions(ctx context.Context, tx *sqldb.Tx, accountIDs []string) ([]Revision, error) {
	in, args := sqldb.In(accountIDs)
	return sqldb.All(ctx, tx, `
		SELECT `+revisionColumns+` FROM run WHERE status = 'pending' AND parent_id IS NULL AND account_id IN `+in+` ORDER BY created, id`, args, scanRevision)
}

// EndedRevisions returns the revisions of at most limit runs of the accounts
// that have ended after the given time, in the order in which they ended. There
// must be at least one account.
func EndedRevisions(ctx context.Context, tx *sqldb.Tx, accountIDs []string, after time.Time, limit int) ([]Revision, error) {
	in, args := sqldb.In(accountIDs, sqldb.At(after), int64(limit))
	return sqldb.All(ctx, tx, `
		SELECT `+revisionColumns+` FROM run WHERE finished > $1 AND parent_id IS NULL AND account_id IN `+in+` ORDER BY finished, id LIMIT $2`, args, scanRevision)
}

// ListUnscoped returns the runs with the given ids, in any order and without
// checking who may see them. There must be at least one id.
func ListUnscoped(ctx context.Context, tx *sqldb.Tx, ids []string) ([]Run, error) {
	in, args := sqldb.In(ids)
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE id IN `+in, args, scanRun)
}
