package events

import (
	"context"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// activity contains the runs of an account with which a stream begins.
type activity struct {
	// runs are the runs that have not ended, oldest first, followed by the runs
	// that have ended since the given time, in the order in which they ended.
	runs []generation.Record
	// isLost reports that more than maxEnded runs have ended since the given
	// time. runs then contains none of them.
	isLost bool
	at     time.Time // time of the state that runs shows
}

// listActivity returns the runs of an account that have not ended, and those
// that have ended after the given time.
func (f *Feed) listActivity(ctx context.Context, accountID string, endedAfter time.Time) (a activity, err error) {
	err = f.DB.Read(ctx, func(tx *sqldb.Tx) error {
		pending, err := run.PendingRevisions(ctx, tx, []string{accountID})
		if err != nil {
			return err
		}
		ended, err := run.EndedRevisions(ctx, tx, []string{accountID}, endedAfter, maxEnded+1)
		if err != nil {
			return err
		}

		a = activity{isLost: len(ended) > maxEnded, at: tx.Now}
		if a.isLost {
			ended = nil
		}
		var ids []string
		for _, one := range slices.Concat(pending, ended) {
			ids = append(ids, one.ID)
		}
		a.runs, err = f.readRecords(ctx, tx, ids)
		return err
	})
	return a, err
}

// recordsAtOnce is the maximum number of runs that one statement reads.
const recordsAtOnce = 256

// readRecords returns the runs with the given ids, in the order of the ids. The
// ids must be those of runs that the callers of the feed may see.
func (f *Feed) readRecords(ctx context.Context, tx *sqldb.Tx, ids []string) ([]generation.Record, error) {
	all := make([]generation.Record, 0, len(ids))
	for chunk := range slices.Chunk(ids, recordsAtOnce) {
		runs, err := run.ListUnscoped(ctx, tx, chunk)
		if err != nil {
			return nil, err
		}
		records, err := f.Runs.RecordsOf(ctx, tx, runs)
		if err != nil {
			return nil, err
		}

		place := make(map[string]int, len(chunk))
		for i, id := range chunk {
			place[id] = i
		}
		slices.SortFunc(records, func(a, b generation.Record) int { return place[a.ID] - place[b.ID] })
		all = append(all, records...)
	}
	return all, nil
}
