package board

import (
	"context"
	"errors"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Mark is how far somebody knows a board.
type Mark struct {
	// Revision is the one up to which all is known.
	Revision int64
	// Of what came later, what is known goes up to the node AfterID in the
	// revision After. Zero: nothing.
	After   int64
	AfterID string
}

// News are what somebody does not know yet about a board.
type News struct {
	Board Board
	// Lost tells that some of it is no longer known: the board must be read anew.
	Lost bool
	// Page is some of the nodes that have changed, deleted ones among them.
	Page
	// Mark is how far one knows the board with these.
	Mark Mark
}

// Revision is where a board is: the short way to learn that nothing has
// happened.
func (bs *Boards) Revision(ctx context.Context, v Viewer, id string) (int64, error) {
	if !ids.Valid(id) {
		return 0, errNoBoard
	}
	n, err := readRevision(ctx, bs.DB, v.AccountID, id)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = errNoBoard
	}
	return n, err
}

// Since gives at most limit nodes that have changed since a mark, in the order
// of their last changes: the mark that comes with them is one to begin from
// whatever happens meanwhile. A node that changes again comes later again. Of a
// board in the trash it gives the board alone.
func (bs *Boards) Since(ctx context.Context, v Viewer, id string, m Mark, limit int) (n News, err error) {
	err = bs.DB.Read(ctx, func(tx *sqldb.Tx) error {
		b, err := findBoard(ctx, tx, v, id)
		if err != nil {
			return err
		}
		n = News{Board: b, Mark: Mark{Revision: b.Revision}}
		// Where the board never was, somebody knows another: an older copy of the
		// database may have taken its place.
		if n.Lost = m.Revision < b.forgotten || m.Revision > b.Revision; n.Lost || !b.Deleted.IsZero() {
			return nil
		}
		if m.After == 0 {
			m.After = m.Revision + 1 // before all of its nodes
		}
		if n.Page, err = nodesSince(ctx, tx, b.ID, m, limit); err != nil {
			return err
		}
		if n.More {
			last := n.Nodes[len(n.Nodes)-1]
			n.Mark = Mark{Revision: max(m.Revision, last.Revision-1), After: last.Revision, AfterID: last.ID}
		}
		return showRefs(ctx, tx, b.AccountID, n.Nodes)
	})
	return n, err
}
