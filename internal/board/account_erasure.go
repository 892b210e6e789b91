package board

import (
	"context"

	"atelier/internal/base/sqldb"
)

// NodesOf returns at most limit nodes of a board in the order of creation,
// starting after the cursor. It returns fewer nodes if their texts are long. It
// does not read the uploads, results and runs that the nodes refer to.
func NodesOf(ctx context.Context, tx *sqldb.Tx, b Board, after *Cursor, limit int) ([]Node, error) {
	p, err := nodesAfter(ctx, tx, b.ID, after, limit)
	return p.Nodes, err
}

// EraseSome permanently deletes at most limit boards of an account, and reports
// whether the account may have more boards.
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
