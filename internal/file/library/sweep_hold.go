package library

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// A backup copies the database first and then the files that the copy refers
// to. Until it has copied all of them, SweepFiles must not delete any. The
// backup prevents that with a row in the table sweep_hold, which it renews at
// intervals. If the backup dies, the row expires.
//
// SweepFiles checks these rows in the transaction that marks files as gone,
// and SQLite serializes writing transactions. So a file is either marked
// before the row is inserted, and the copy of the database contains the mark,
// or after the row is deleted.
const (
	holdDuration      = 5 * time.Minute
	holdRenewInterval = time.Minute
)

// SweepHold prevents SweepFiles from deleting content while a backup is
// running. It works only with the embedded database.
type SweepHold struct {
	db   *sqldb.DB
	id   string
	stop context.CancelFunc
	done sync.WaitGroup
	err  error // ErrHoldExpired if a renewal came too late; read it only after done.Wait
}

// ErrHoldExpired means that a sweep hold expired during a backup, so that
// files may have been deleted before they were copied.
var ErrHoldExpired = errors.New("the backup did not renew its hold on deleted files in time, so files may be missing from the backup; run the backup again")

// HoldSweep prevents SweepFiles from deleting content until ReleaseHold is
// called, and renews the hold in the background.
func HoldSweep(ctx context.Context, db *sqldb.DB) (*SweepHold, error) {
	h := &SweepHold{db: db, id: ids.New()}
	err := db.Write(ctx, func(tx *sqldb.Tx) error { return insertHold(ctx, tx, h.id, tx.Now.Add(holdDuration)) })
	if err != nil {
		return nil, fmt.Errorf("hold deleted files for the backup: %w", err)
	}

	ctx, h.stop = context.WithCancel(ctx)
	h.done.Go(func() { h.renewLoop(ctx) })
	return h, nil
}

// renewLoop renews the hold at intervals until ctx is cancelled or the hold
// has expired.
func (h *SweepHold) renewLoop(ctx context.Context) {
	tick := time.NewTicker(holdRenewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		renewed := false
		err := h.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			renewed, err = renewHold(ctx, tx, h.id, tx.Now.Add(holdDuration))
			return err
		})
		if err == nil && !renewed {
			h.err = ErrHoldExpired
			return
		}
	}
}

// ReleaseHold allows SweepFiles to delete content again. It returns
// ErrHoldExpired if the hold expired in between, for example because the
// process was suspended for long.
func (h *SweepHold) ReleaseHold(ctx context.Context) error {
	h.stop()
	h.done.Wait()
	ended := false
	ctx = context.WithoutCancel(ctx) // a cancelled backup must not block SweepFiles until the hold expires
	err := h.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		ended, err = endHold(ctx, tx, h.id)
		return err
	})
	if err == nil && !ended {
		err = ErrHoldExpired
	}
	return errors.Join(h.err, err)
}
