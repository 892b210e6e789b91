package sqldb

import (
	"context"
	"errors"
	"fmt"
)

// MoveTable is a table that a database has while an installation is moved into
// it (see package move). No command but atelier move opens such a database.
const MoveTable = "atelier_move"

// ErrUnfinishedMove is returned for a database into which an installation was
// moved only in part.
var ErrUnfinishedMove = errors.New("this database has only a part of an installation, because atelier move has not finished: run the same atelier move again")

// IsMoveTarget reports whether an installation is being moved into the
// database.
func (db *DB) IsMoveTarget(ctx context.Context) (bool, error) {
	query := `SELECT to_regclass('` + MoveTable + `') IS NOT NULL`
	if db.lite != nil {
		query = `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '` + MoveTable + `')`
	}
	return One[bool](ctx, db, query)
}

// checkMoved returns ErrUnfinishedMove if an installation is being moved into
// the database.
func (db *DB) checkMoved(ctx context.Context) error {
	unfinished, err := db.IsMoveTarget(ctx)
	if err == nil && unfinished {
		err = ErrUnfinishedMove
	}
	return err
}

// MigrateMoveTarget is like Migrate, but for a database into which an
// installation is being moved.
func (db *DB) MigrateMoveTarget(ctx context.Context) error {
	_, err := db.applyMigrations(ctx)
	return err
}

// IsFileInUse reports whether another process has the SQLite database at the
// given URL open. It must not be called while this process has the database
// open, because it would release the locks of this process.
func IsFileInUse(address string) (bool, error) {
	path, err := sqlitePath(address)
	if err != nil {
		return false, err
	}
	used, err := inUse(path + "-shm")
	if err != nil {
		return false, fmt.Errorf("check whether the database is in use: %w", err)
	}
	return used, nil
}
