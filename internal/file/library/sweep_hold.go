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
// to. Until it has copied all of them, the sweep must not remove any. The
// backup stops the sweep with a row in sweep_hold that it renews. If the backup
// dies, the row expires.
//
// The sweep checks these rows in the transaction that marks files as gone, and
// SQLite serializes writing transactions. So a file is either marked before the
// hold begins, and the copy of the database contains the mark, or not before
// the hold ends.
const (
	holdDuration      = 5 * time.Minute
	holdRenewInterval = time.Minute
)

// SweepHold stops the sweep from removing bytes. It works with the embedded database
// only.
type SweepHold struct {
	db   *sqldb.DB
	id   string
	stop context.CancelFunc
	done sync.WaitGroup
	err  error // set before done: the hold expired in between
}

// ErrHoldExpired reports that the hold expired for some time, so that files may
// have been removed.
var ErrHoldExpired = errors.New("the sweep hold expired; files may have been removed meanwhile")

// HoldSweep begins a hold. ReleaseHold ends it.
func HoldSweep(ctx context.Context, db *sqldb.DB) (*SweepHold, error) {
	h := &SweepHold{db: db, id: ids.New()}
	err := db.Write(ctx, func(tx *sqldb.Tx) error { return insertHold(ctx, tx, h.id, tx.Now.Add(holdDuration)) })
	if err != nil {
		return nil, fmt.Errorf("hold sweep: %w", err)
	}

	ctx, h.stop = context.WithCancel(ctx)
	h.done.Go(func() { h.renewLoop(ctx) })
	return h, nil
}

// renewLoop renews the hold until ctx ends or the hold has expired.
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

// ReleaseHold ends the hold. It returns ErrHoldExpired if the hold expired in
// between, for example after a long pause of the process.
func (h *SweepHold) ReleaseHold(ctx context.Context) error {
	h.stop()
	h.done.Wait()
	ended := false
	ctx = context.WithoutCancel(ctx) // a cancelled backup must not delay the next sweep
	err := h.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		ended, err = endHold(ctx, tx, h.id)
		return err
	})
	if err == nil && !ended {
		err = ErrHoldExpired
	}
	return errors.Join(h.err, err)
}
