package board

import (
	"context"

	"atelier/internal/base/sqldb"
)

// NodesOf gives at most limit nodes of a board, fewer where their texts are
// long: those after a place, or the first. What they refer to is not looked up.
func NodesOf(ctx context.Context, tx *sqldb.Tx, b Board, after *Place, limit int) ([]Node, error) {
	p, err := nodesAfter(ctx, tx, b.ID, after, limit)
	return p.Nodes, err
}

// EraseSome removes at most limit boards of an account for good, and tells
// whether some may be left.
func EraseSome(ctx context.Context, tx *sqldb.Tx, accountID string, limit int) (more bool, err error) {
	ids, err := lockSome(ctx, tx, accountID, limit)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if err := removeBoard(ctx, tx, id); err != nil {
			return false, err
		}
	}
	return len(ids) == limit, nil
}
