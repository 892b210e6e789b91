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

// A backup copies the database first and the files that the copy names after
// it. Until it has them all, Sweep must not remove any: the backup holds it off
// with a row that it renews. A backup that dies lets the row end by itself.
//
// Sweep looks for such rows in the transaction that marks files as gone, and
// SQLite runs writing transactions one after the other. So a file is marked
// before the hold begins, and the copy says that it is gone, or after the hold.
const (
	holdDuration      = 5 * time.Minute
	holdRenewInterval = time.Minute // renewed
)

// Hold keeps Sweep from removing the bytes of files. It is for the embedded
// database only.
type Hold struct {
	db   *sqldb.DB
	id   string
	stop context.CancelFunc
	done sync.WaitGroup
	err  error // after done: it was not held all the time
}

// ErrHoldLapsed says that files may have been removed while they were held.
var ErrHoldLapsed = errors.New("files were not held all the time")

// HoldFiles begins to hold. Release ends it.
func HoldFiles(ctx context.Context, db *sqldb.DB) (*Hold, error) {
	h := &Hold{db: db, id: ids.New()}
	err := db.Write(ctx, func(tx *sqldb.Tx) error { return insertHold(ctx, tx, h.id, tx.Now.Add(holdDuration)) })
	if err != nil {
		return nil, fmt.Errorf("hold files: %w", err)
	}
	ctx, h.stop = context.WithCancel(ctx)
	h.done.Go(func() { h.renewLoop(ctx) })
	return h, nil
}

// renewLoop renews the hold until ctx ends or the hold has lapsed.
func (h *Hold) renewLoop(ctx context.Context) {
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
			h.err = ErrHoldLapsed
			return
		}
	}
}

// Release ends the hold. It fails with ErrHoldLapsed where the hold was not kept
// all the time, as after a long pause of the process.
func (h *Hold) Release(ctx context.Context) error {
	h.stop()
	h.done.Wait()
	ended := false
	ctx = context.WithoutCancel(ctx) // others need not wait for its end because we were called off
	err := h.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		ended, err = endHold(ctx, tx, h.id)
		return err
	})
	if err == nil && !ended {
		err = ErrHoldLapsed
	}
	return errors.Join(h.err, err)
}

// ForgetHolds ends all holds, in a copy of a database: those of the original are
// not its business.
func ForgetHolds(ctx context.Context, tx *sqldb.Tx) error { return removeHolds(ctx, tx) }
