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
	if err := bs.repeat(ctx, forget); err != nil {
		return fmt.Errorf("sweep deleted nodes: %w", err)
	}
	if bs.Keep <= 0 {
		return nil
	}
	err := bs.repeat(ctx, func(ctx context.Context, tx *sqldb.Tx) (bool, error) {
		id, err := oldestDeleted(ctx, tx, tx.Now.Add(-bs.Keep))
		if err != nil || id == "" {
			return false, err
		}
		return true, remove(ctx, tx, id)
	})
	if err != nil {
		return fmt.Errorf("sweep deleted boards: %w", err)
	}
	return nil
}

// repeat does something as long as there is more of it, each time in a
// transaction of its own.
func (bs *Boards) repeat(ctx context.Context, do func(context.Context, *sqldb.Tx) (more bool, err error)) error {
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

// forget removes some deleted nodes of one board, and has the board say so.
func forget(ctx context.Context, tx *sqldb.Tx) (more bool, err error) {
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
