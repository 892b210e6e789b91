package board

import (
	"context"
	"errors"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

// Mark is the position up to which a client has received the changes of a
// board.
type Mark struct {
	// Revision is the revision up to which the client has received all changes.
	Revision int64
	// After and AfterID are the revision and the id of the last node that was
	// sent to the client. They are set if only some of the changes after
	// Revision were sent. Otherwise After is 0.
	After   int64
	AfterID string
}

// Delta contains the changes of a board since a Mark.
type Delta struct {
	Board Board
	// Lost reports that some of the changes since the mark are no longer
	// stored, so that the client must read the whole board again.
	Lost bool
	// Page contains the changed nodes, including deleted nodes. If Page.More is
	// set, the list is incomplete.
	Page
	// Mark is the mark to pass to the next call of ListChanges.
	Mark Mark
}

// GetRevision returns the current revision of a board. Clients use it as a
// cheap check for changes.
func (bs *Boards) GetRevision(ctx context.Context, v principal.Principal, id string) (int64, error) {
	if !ids.Valid(id) {
		return 0, errNoBoard
	}
	n, err := readRevision(ctx, bs.DB, v.AccountID, id)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = errNoBoard
	}
	return n, err
}

// ListChanges returns at most limit nodes that have changed since a mark, in
// the order of their last changes. The next call continues from the mark in the
// result. A node that changes again is returned again. For a board in the
// trash, the result has no nodes.
func (bs *Boards) ListChanges(ctx context.Context, v principal.Principal, id string, m Mark, limit int) (n Delta, err error) {
	err = bs.DB.Read(ctx, func(tx *sqldb.Tx) error {
		b, err := findBoard(ctx, tx, v, id)
		if err != nil {
			return err
		}
		n = Delta{Board: b, Mark: Mark{Revision: b.Revision}}
		// A client can have a revision that the board never had if the database
		// was restored from an older backup.
		if n.Lost = m.Revision < b.forgotten || m.Revision > b.Revision; n.Lost || !b.Deleted.IsZero() {
			return nil
		}
		if m.After == 0 {
			m.After = m.Revision + 1 // start with the first node of the next revision
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
