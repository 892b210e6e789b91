package webhook

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// endedQuery finds events that are sent no more. The index webhook_event_ended
// has only these events.
const endedQuery = `SELECT id, coalesce(run_id, '') FROM webhook_event WHERE next_at IS NULL AND created < $1 ORDER BY created LIMIT $2`

// EndedEvent is an event that is sent no more.
type EndedEvent struct {
	ID    string
	RunID string // empty for a notice
}

// ListEnded returns at most limit events that were created before the given time
// and are sent no more, oldest first.
func ListEnded(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) ([]EndedEvent, error) {
	return sqldb.All(ctx, tx, endedQuery, []any{before.UnixMicro(), int64(limit)}, func(row sqldb.Scanner) (e EndedEvent, err error) {
		err = row.Scan(&e.ID, &e.RunID)
		return e, err
	})
}

// DeleteEnded deletes events and the attempts to deliver them. It keeps events
// that were made due again since they were listed, and returns the others.
func DeleteEnded(ctx context.Context, tx *sqldb.Tx, events []EndedEvent) ([]EndedEvent, error) {
	if len(events) == 0 {
		return nil, nil
	}
	ids := make([]string, len(events))
	runs := map[string]string{}
	for i, e := range events {
		ids[i] = e.ID
		runs[e.ID] = e.RunID
	}

	in, args := sqldb.In(ids)
	locked, err := sqldb.All(ctx, tx, `SELECT id FROM webhook_event WHERE next_at IS NULL AND id IN `+in+tx.Dialect.ForUpdate, args, func(row sqldb.Scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
	if err != nil || len(locked) == 0 {
		return nil, err
	}

	in, args = sqldb.In(locked)
	for _, query := range []string{`DELETE FROM webhook_attempt WHERE event_id IN ` + in, `DELETE FROM webhook_event WHERE id IN ` + in} {
		if _, err := tx.Exec(ctx, query, args...); err != nil {
			return nil, err
		}
	}
	var deleted []EndedEvent
	for _, id := range locked {
		deleted = append(deleted, EndedEvent{ID: id, RunID: runs[id]})
	}
	return deleted, nil
}

// ListWaiting returns those of the given runs that have an event which is still
// being sent.
func ListWaiting(ctx context.Context, tx *sqldb.Tx, runIDs []string) ([]string, error) {
	if len(runIDs) == 0 {
		return nil, nil
	}
	in, args := sqldb.In(runIDs)
	return sqldb.All(ctx, tx, `SELECT run_id FROM webhook_event WHERE next_at IS NOT NULL AND run_id IN `+in, args, func(row sqldb.Scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
}
