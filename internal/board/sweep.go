package board

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

const (
	// tombstoneAge is how long the rows of deleted nodes are kept.
	tombstoneAge = 24 * time.Hour
	batch        = 200
)

// SweepDeleted permanently deletes boards and nodes whose retention time has
// expired, and the expired presence of viewers. Several instances of the server may run it concurrently, and it may
// be interrupted at any point.
func (bs *Boards) SweepDeleted(ctx context.Context) error {
	if err := bs.DB.Write(ctx, func(tx *sqldb.Tx) error { return deleteExpired(ctx, tx) }); err != nil {
		return fmt.Errorf("sweep expired viewers: %w", err)
	}
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

// repeatBatches calls do, each time in a new transaction, until it returns
// false or an error.
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

// removeTombstonesOfOne removes about batch rows of deleted nodes of one board.
// It stores in the board's row the revision up to which these rows were
// removed.
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
	// The board's row is updated before the rows of deleted nodes are removed.
	// Otherwise a client that follows the board could miss deletions without
	// noticing. The update also waits for concurrent writers of the board.
	if err := setForgotten(ctx, tx, id, upTo); err != nil {
		return false, err
	}
	return true, removeTombstones(ctx, tx, id, upTo)
}
