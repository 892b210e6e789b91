package generation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/run"
)

// Retention is how long the contents of runs and the records of webhook events
// are kept. 0 keeps them.
type Retention struct {
	Runs   time.Duration // counted from the end of a run
	Events time.Duration // counted from the creation of an event
}

// pruneBatch is the number of runs or events that one transaction prunes, so
// that nobody waits long for its locks.
const pruneBatch = 200

// Prune erases the contents of runs and the webhook events that exceed their
// retention. The rows of the runs stay, because the ledger, the reports and the
// audit log count them. Prune can be killed at any time; the next call
// continues.
func Prune(ctx context.Context, db *sqldb.DB, r Retention) error {
	if r.Events > 0 {
		if err := pruneEvents(ctx, db, r.Events); err != nil {
			return fmt.Errorf("prune webhook events: %w", err)
		}
	}
	if r.Runs > 0 {
		if err := pruneRuns(ctx, db, r.Runs); err != nil {
			return fmt.Errorf("prune runs: %w", err)
		}
	}
	return nil
}

// pruneRuns erases the contents of runs that ended more than maxAge ago. Runs
// whose event is still being sent are left for a later call.
func pruneRuns(ctx context.Context, db *sqldb.DB, maxAge time.Duration) error {
	var after run.Cursor
	for {
		var last run.Cursor
		var found int
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			ids, end, err := run.ListUnpruned(ctx, tx, tx.Now.Add(-maxAge), after, pruneBatch)
			if err != nil {
				return err
			}
			last = end
			found = len(ids)

			waiting, err := webhook.ListWaiting(ctx, tx, ids)
			if err != nil {
				return err
			}
			ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(waiting, id) })
			if err := run.Prune(ctx, tx, ids); err != nil {
				return err
			}
			if err := webhook.Erase(ctx, tx, ids); err != nil {
				return err
			}
			return library.EraseResults(ctx, tx, ids)
		})
		if err != nil || found < pruneBatch {
			return err
		}
		after = last
	}
}

// pruneEvents deletes the webhook events that were created more than maxAge ago
// and are sent no more, with the webhook URLs of their runs.
func pruneEvents(ctx context.Context, db *sqldb.DB, maxAge time.Duration) error {
	for {
		var found int
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			events, err := webhook.ListEnded(ctx, tx, tx.Now.Add(-maxAge), pruneBatch)
			if err != nil {
				return err
			}
			found = len(events)

			deleted, err := webhook.DeleteEnded(ctx, tx, events)
			if err != nil {
				return err
			}
			var runIDs []string
			for _, e := range deleted {
				if e.RunID != "" {
					runIDs = append(runIDs, e.RunID)
				}
			}
			return run.EraseWebhooks(ctx, tx, runIDs)
		})
		if err != nil || found < pruneBatch {
			return err
		}
	}
}
