// Package board stores boards, on which the members of an account arrange
// nodes: texts, uploads, results and runs.
//
// Every change to a board or its nodes begins with one conditional update of
// the board's row, which increments the board's revision. The update fails if
// the client expected another revision of the board, and blocks other writers
// of the board until the transaction ends. A node stores the revision of its
// last change, so the changes since a revision are the nodes with a greater
// revision.
//
//	live ──delete──▶ in the trash ──Keep──▶ removed for good
//	  ▲                   │
//	  └──────restore──────┘
//
// The row of a deleted node is emptied and kept for a day, so that clients that
// follow the board receive the deletion. When such rows are removed, the
// board's row stores the revision up to which deletions are no longer listed.
//
// A node may refer to an upload, a result or a run of the same account. If the
// upload, result or run is deleted, the node stays and is shown as missing.
package board

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

const (
	// MaxNodes is the maximum number of nodes of a board.
	MaxNodes = 5000
	// MaxBoards is the maximum number of boards of an account, not counting
	// deleted ones.
	MaxBoards = 1000
	// maxName is the maximum length of the name of a board, in characters.
	maxName = 200
)

// Boards creates, reads and changes boards and their nodes.
type Boards struct {
	DB  *sqldb.DB
	Hub *pubsub.Hub // pub/sub hub that is notified of every change, by board id
	// Keep is how long a deleted board can be restored. If it is 0, deleted
	// boards are kept forever.
	Keep time.Duration
}

// checkRemoval returns an error unless the principal may delete and restore the
// board.
func checkRemoval(p principal.Principal, b Board) error {
	if p.PersonID == b.PersonID || p.May(company.ManageTeam) {
		return nil
	}
	return fault.New(fault.Forbidden, "Only the creator of this board, or a manager of the team, can delete or restore it.").With("reason", "permission")
}

// Board is a board without its nodes.
type Board struct {
	ID        string
	AccountID string
	PersonID  string // id of the creator
	Name      string
	Revision  int64
	Nodes     int64 // number of nodes
	Created   time.Time
	Updated   time.Time
	Deleted   time.Time // zero if the board is not deleted

	// forgotten is the revision up to which the rows of deleted nodes were
	// removed from the database.
	forgotten int64
}

// TeamID returns the id of the team that the board belongs to, or "" if it
// belongs to a personal account.
func (b Board) TeamID() string {
	if b.AccountID == b.PersonID {
		return ""
	}
	return b.AccountID
}

// Cursor is the position of the last item of a page, in lists sorted by
// creation time and id.
type Cursor struct {
	Created time.Time
	ID      string
}

// Match is the precondition of a change: the revisions that the board may have
// before the change. The zero Match allows any revision.
type Match struct {
	Strict    bool // the board must be at one of Revisions
	Revisions []int64
}

// errNoBoard is returned for boards of other accounts, for deleted boards and
// for boards that do not exist.
var errNoBoard = fault.New(fault.NotFound, "There is no such board.")

func errRevision(revision int64) error {
	return fault.New(fault.PreconditionFailed, "The board has changed since you read it. Read it again and check whether your change still makes sense.").With("revision", revision)
}

// CreateBoard creates an empty board.
func (bs *Boards) CreateBoard(ctx context.Context, v principal.Principal, name string) (b Board, err error) {
	if name, err = sanitize.Name(name, maxName); err != nil {
		return Board{}, err
	}
	err = bs.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := checkRoom(ctx, tx, v); err != nil {
			return err
		}
		b = Board{
			ID:        ids.New(),
			AccountID: v.AccountID,
			PersonID:  v.PersonID,
			Name:      name,
			Revision:  1,
			Created:   tx.Now,
			Updated:   tx.Now,
		}
		return insertBoard(ctx, tx, b)
	})
	return b, err
}

// checkRoom returns an error if the account already has MaxBoards boards. It
// locks the account, so that concurrent transactions cannot exceed the limit
// together.
func checkRoom(ctx context.Context, tx *sqldb.Tx, v principal.Principal) error {
	there, err := lockAccount(ctx, tx, v)
	if err != nil {
		return err
	}
	if !there {
		return fault.New(fault.Forbidden, "You have no access to this account.").With("reason", "account")
	}
	n, err := countBoards(ctx, tx, v.AccountID)
	if err == nil && n >= MaxBoards {
		err = fault.New(fault.Invalid, fmt.Sprintf("An account can have at most %d boards. Delete one first.", MaxBoards))
	}
	return err
}

// ListBoards returns at most limit boards of the account, newest first,
// starting after the cursor. If trash is set, it returns only deleted boards,
// otherwise only boards that are not deleted.
func (bs *Boards) ListBoards(ctx context.Context, v principal.Principal, trash bool, after *Cursor, limit int) (all []Board, err error) {
	err = bs.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		all, err = List(ctx, tx, v.AccountID, trash, after, limit)
		return err
	})
	return all, err
}

// Page is a part of a list of nodes.
type Page struct {
	Nodes []Node
	More  bool // more nodes follow
}

// GetBoard returns a board and at most limit of its nodes, oldest first,
// starting after the cursor. It returns fewer nodes if their texts are long.
func (bs *Boards) GetBoard(ctx context.Context, v principal.Principal, id string, after *Cursor, limit int) (b Board, p Page, err error) {
	err = bs.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		if b, err = findLive(ctx, tx, v, id); err != nil {
			return err
		}
		p, err = readPage(ctx, tx, b, after, limit)
		return err
	})
	return b, p, err
}

// readPage returns at most limit nodes of a board, starting after the cursor,
// with the uploads, results and runs that the nodes refer to.
func readPage(ctx context.Context, tx *sqldb.Tx, b Board, after *Cursor, limit int) (Page, error) {
	p, err := nodesAfter(ctx, tx, b.ID, after, limit)
	if err != nil {
		return Page{}, err
	}
	return p, showRefs(ctx, tx, b.AccountID, p.Nodes)
}

// findBoard returns a board of the account, even if it is deleted.
func findBoard(ctx context.Context, tx *sqldb.Tx, v principal.Principal, id string) (Board, error) {
	if !ids.Valid(id) {
		return Board{}, errNoBoard
	}
	b, err := byID(ctx, tx, v.AccountID, id)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = errNoBoard
	}
	return b, err
}

// findLive returns a board of the account that is not deleted.
func findLive(ctx context.Context, tx *sqldb.Tx, v principal.Principal, id string) (Board, error) {
	b, err := findBoard(ctx, tx, v, id)
	if err == nil && !b.Deleted.IsZero() {
		err = errNoBoard
	}
	return b, err
}

// takeRevision locks the row of the board and returns the board with its next
// revision, which the caller stores with updateBoard. It returns an error if the
// board is missing, deleted or at a revision that m does not allow.
func (bs *Boards) takeRevision(ctx context.Context, tx *sqldb.Tx, v principal.Principal, id string, m Match) (Board, error) {
	if !ids.Valid(id) {
		return Board{}, errNoBoard
	}
	if !m.Strict || len(m.Revisions) > 0 {
		b, err := lockBoard(ctx, tx, v.AccountID, id, m)
		if err == nil {
			b.Revision++
			b.Updated = tx.Now
			tx.AfterCommit(func() { bs.Hub.Notify(id) })
		}
		if !errors.Is(err, sqldb.ErrNoRows) {
			return b, err
		}
	}
	b, err := findLive(ctx, tx, v, id)
	if err == nil {
		err = errRevision(b.Revision)
	}
	return Board{}, err
}

// RenameBoard renames a board, and returns it with at most limit of its nodes.
func (bs *Boards) RenameBoard(ctx context.Context, v principal.Principal, id string, m Match, name string, limit int) (b Board, p Page, err error) {
	if name, err = sanitize.Name(name, maxName); err != nil {
		return Board{}, Page{}, err
	}
	err = bs.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if b, err = bs.takeRevision(ctx, tx, v, id, m); err != nil {
			return err
		}
		b.Name = name
		if err := updateBoard(ctx, tx, b); err != nil {
			return err
		}
		p, err = readPage(ctx, tx, b, nil, limit)
		return err
	})
	return b, p, err
}

// DeleteBoard moves a board to the trash. Only the creator of the board and
// managers of the team may do so.
func (bs *Boards) DeleteBoard(ctx context.Context, v principal.Principal, id string, m Match) error {
	return bs.DB.Write(ctx, func(tx *sqldb.Tx) error {
		b, err := findLive(ctx, tx, v, id)
		if err != nil {
			return err
		}
		if err := checkRemoval(v, b); err != nil {
			return err
		}
		if b, err = bs.takeRevision(ctx, tx, v, id, m); err != nil {
			return err
		}
		b.Deleted = tx.Now
		return updateBoard(ctx, tx, b)
	})
}

// RestoreBoard takes a board out of the trash and returns it with at most limit
// of its nodes. Only the creator of the board and managers of the team may do
// so. A board that is not in the trash stays unchanged.
func (bs *Boards) RestoreBoard(ctx context.Context, v principal.Principal, id string, limit int) (b Board, p Page, err error) {
	err = bs.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if b, err = findBoard(ctx, tx, v, id); err != nil {
			return err
		}
		if err := checkRemoval(v, b); err != nil {
			return err
		}
		if !b.Deleted.IsZero() {
			if err := checkRoom(ctx, tx, v); err != nil {
				return err
			}
			if err := restoreBoard(ctx, tx, b); err != nil {
				return err
			}
			tx.AfterCommit(func() { bs.Hub.Notify(id) })
		}
		// Another transaction may have restored or permanently deleted the
		// board.
		if b, err = findLive(ctx, tx, v, id); err != nil {
			return err
		}
		p, err = readPage(ctx, tx, b, nil, limit)
		return err
	})
	return b, p, err
}
