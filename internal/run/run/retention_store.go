package run

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// unprunedQuery finds runs whose contents can be erased. The index run_unpruned
// has only ended runs with contents.
const unprunedQuery = `
	SELECT finished, id FROM run WHERE finished IS NOT NULL AND NOT pruned AND finished < $1 AND finished >= $2 AND (finished, id) > ($2, $3)
	ORDER BY finished, id LIMIT $4`

// ListUnpruned returns the ids of at most limit runs that ended before the given
// time and that Prune has not changed, in the order in which they ended,
// starting after the cursor. last is the cursor for the next call; its time is
// the end of a run.
func ListUnpruned(ctx context.Context, tx *sqldb.Tx, before time.Time, after Cursor, limit int) (ids []string, last Cursor, err error) {
	from := int64(0)
	if !after.Created.IsZero() {
		from = after.Created.UnixMicro()
	}
	err = tx.EachRow(ctx, unprunedQuery, []any{before.UnixMicro(), from, after.ID, int64(limit)}, func(row sqldb.Scanner) error {
		var finished sqldb.Time
		if err := row.Scan(&finished, &last.ID); err != nil {
			return err
		}
		last.Created = finished.Time
		ids = append(ids, last.ID)
		return nil
	})
	return ids, last, err
}

// Prune removes from ended runs all that neither the ledger nor a report counts:
// inputs, metadata and webhook URL, idempotency keys, polling records, and
// attempts other than the last. The rows of the runs stay, with their tools,
// plugins, times and costs. Input files that the sweep has not looked at yet
// stay recorded.
func Prune(ctx context.Context, tx *sqldb.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	in, args := sqldb.In(ids)
	for _, query := range []string{
		`UPDATE run SET inputs = '{}', prompt = '', metadata = '', webhook_url = '', pruned = TRUE WHERE status <> 'pending' AND NOT pruned AND id IN ` + in,
		`DELETE FROM idempotency WHERE run_id IN ` + in,
		`DELETE FROM run_poll WHERE run_id IN ` + in,
		`DELETE FROM run_attempt WHERE outcome IN ('` + Lost + `', '` + Returned + `') AND run_id IN ` + in,
		`DELETE FROM run_input WHERE swept AND run_id IN ` + in,
	} {
		if _, err := tx.Exec(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// EraseWebhooks removes the webhook URLs of ended runs, whose events are about
// to be deleted.
func EraseWebhooks(ctx context.Context, tx *sqldb.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	in, args := sqldb.In(ids)
	_, err := tx.Exec(ctx, `UPDATE run SET webhook_url = '' WHERE status <> 'pending' AND webhook_url <> '' AND id IN `+in, args...)
	return err
}
