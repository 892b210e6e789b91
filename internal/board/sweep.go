package board

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

const (
	// tombstoneAge is for how long it is known which nodes were deleted.
	tombstoneAge = 24 * time.Hour
	batch        = 200
)

// Sweep removes for good what was deleted long enough ago. It may run on
// several nodes at once, and may be killed at any point.
func (bs *Boards) Sweep(ctx context.Context) error {
	if err := bs.repeatBatches(ctx, removeTombstonesOfOne); err != nil {
		return fmt.Errorf("sweep deleted nodes: %w", err)
	}
	if bs.Keep <= 0 {
		return nil
	}
	err := bs.repeatBatches(ctx, func(ctx context.Context, tx *sqldb.Tx) (bool, error) {
		id, err := oldestDeleted(ctx, tx, tx.Now.Add(-bs.Keep))
		if err != nil || id == "" {
			return false, err
		}
		return true, removeBoard(ctx, tx, id)
	})
	if err != nil {
		return fmt.Errorf("sweep deleted boards: %w", err)
	}
	return nil
}

// repeatBatches does something as long as there is more of it, each time in a
// transaction of its own.
func (bs *Boards) repeatBatches(ctx context.Context, do func(context.Context, *sqldb.Tx) (more bool, err error)) error {
	for {
		var more bool
		err := bs.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			more, err = do(ctx, tx)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// removeTombstonesOfOne removes some deleted nodes of one board, and has the board say so.
func removeTombstonesOfOne(ctx context.Context, tx *sqldb.Tx) (more bool, err error) {
	before := tx.Now.Add(-tombstoneAge)
	id, err := oldestTombstone(ctx, tx, before)
	if err != nil || id == "" {
		return false, err
	}
	upTo, err := tombstonesUpTo(ctx, tx, id, before, batch)
	if err != nil {
		return false, err
	}
	// The board first: whoever follows it must not find the rows gone before it
	// says so, and a writer is waited for.
	if err := setForgotten(ctx, tx, id, upTo); err != nil {
		return false, err
	}
	return true, removeTombstones(ctx, tx, id, upTo)
}
