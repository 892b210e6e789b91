// Package board is what accounts pin down and arrange: boards, and the nodes on
// them.
//
// Every change of a board, or of what is on it, begins with one conditional
// update of the board's row, which takes the next revision. It decides whether
// the change is meant for the board as it is, and lets one writer at a time
// come after it: what follows in the transaction sees no others. A node carries
// the revision of its last change, so what has happened since some revision is
// the nodes with a greater one.
//
//	live ──delete──▶ in the trash ──Keep──▶ removed for good
//	  ▲                   │
//	  └──────restore──────┘
//
// A node that was deleted stays for a day as a row that holds nothing, for those
// who follow the board. When such rows are removed the board remembers up to
// which revision it has forgotten.
//
// What a node refers to belongs to the same account and may go at any time: the
// node stays and says that it is missing.
package board

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
)

const (
	// MaxNodes is how many nodes a board can have.
	MaxNodes = 5000
	// MaxBoards is how many boards an account can have, not counting deleted ones.
	MaxBoards = 1000
	// maxName is how many characters the name of a board can have.
	maxName = 200
)

// Boards are the boards of an installation.
type Boards struct {
	DB  *sqldb.DB
	Hub *pubsub.Hub // hears of every change, by the board's id
	// Keep is how long a deleted board can be restored, 0 for ever.
	Keep time.Duration
}

// Viewer is who asks, for which account. That the person may is settled.
type Viewer struct {
	PersonID  string
	AccountID string // the person's or a team's id
	Manager   bool   // may remove what others made
}

// mayRemove tells whether the viewer may delete a board and bring it back.
func (v Viewer) mayRemove(b Board) error {
	if v.PersonID == b.PersonID || v.Manager {
		return nil
	}
	return fault.New(fault.Forbidden, "Only who made this board, or who manages the team, can delete or restore it.").With("reason", "permission")
}

// Board is a board without its nodes.
type Board struct {
	ID        string
	AccountID string
	PersonID  string // who made it
	Name      string
	Revision  int64
	Nodes     int64 // how many
	Created   time.Time
	Updated   time.Time
	Deleted   time.Time // zero: it is not

	forgotten int64
}

// Team is the team that the board belongs to, "" for the personal account.
func (b Board) Team() string {
	if b.AccountID == b.PersonID {
		return ""
	}
	return b.AccountID
}

// Place is where a page ended.
type Place struct {
	Created time.Time
	ID      string
}

// Match says at which revisions a change may be made. The zero Match says at
// any.
type Match struct {
	Strict    bool // only at one of Revisions
	Revisions []int64
}

// errNoBoard is one answer for boards of others, for those that were deleted
// and for those that never were.
var errNoBoard = fault.New(fault.NotFound, "There is no such board.")

func errRevision(revision int64) error {
	return fault.New(fault.Conflict, "The board has changed since. Get it anew, and look whether the change still makes sense.").With("revision", revision)
}

// checkName gives the name of a board as it is kept.
func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", fault.New(fault.Invalid, "A board needs a name.").On("name")
	case utf8.RuneCountInString(name) > maxName:
		return "", fault.New(fault.Invalid, fmt.Sprintf("A name has at most %d characters.", maxName)).On("name")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "", fault.New(fault.Invalid, "A name is one line of text.").On("name")
	}
	return name, nil
}

// Create makes an empty board.
func (bs *Boards) Create(ctx context.Context, v Viewer, name string) (b Board, err error) {
	if name, err = checkName(name); err != nil {
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

// checkRoom refuses one more board where the account has as many as it may. Whoever
// adds one waits here for others who do.
func checkRoom(ctx context.Context, tx *sqldb.Tx, v Viewer) error {
	there, err := lockAccount(ctx, tx, v)
	if err != nil {
		return err
	}
	if !there {
		return fault.New(fault.Forbidden, "You have no access to this account.").With("reason", "account")
	}
	n, err := countBoards(ctx, tx, v.AccountID)
	if err == nil && n >= MaxBoards {
		err = fault.New(fault.Invalid, fmt.Sprintf("An account has at most %d boards. Delete one first.", MaxBoards))
	}
	return err
}

// List gives at most limit boards of the account, newest first: those after a
// place, or the first; and where it is the trash that is asked for, those that
// were deleted.
func (bs *Boards) List(ctx context.Context, v Viewer, trash bool, after *Place, limit int) (all []Board, err error) {
	err = bs.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		all, err = Kept(ctx, tx, v.AccountID, trash, after, limit)
		return err
	})
	return all, err
}

// Page is some nodes of a board, in order.
type Page struct {
	Nodes []Node
	More  bool // there are others after them
}

// Get gives a board and at most limit of its nodes, those added first coming
// first: those after a place, or the first. Where texts are long there are fewer.
func (bs *Boards) Get(ctx context.Context, v Viewer, id string, after *Place, limit int) (b Board, p Page, err error) {
	err = bs.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		if b, err = findLive(ctx, tx, v, id); err != nil {
			return err
		}
		p, err = readPage(ctx, tx, b, after, limit)
		return err
	})
	return b, p, err
}

// readPage reads nodes with what they show.
func readPage(ctx context.Context, tx *sqldb.Tx, b Board, after *Place, limit int) (Page, error) {
	p, err := nodesAfter(ctx, tx, b.ID, after, limit)
	if err != nil {
		return Page{}, err
	}
	return p, showRefs(ctx, tx, b.AccountID, p.Nodes)
}

// findBoard gives a board of the viewer's account, deleted ones too.
func findBoard(ctx context.Context, tx *sqldb.Tx, v Viewer, id string) (Board, error) {
	if !ids.Valid(id) {
		return Board{}, errNoBoard
	}
	b, err := byID(ctx, tx, v.AccountID, id)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = errNoBoard
	}
	return b, err
}

func findLive(ctx context.Context, tx *sqldb.Tx, v Viewer, id string) (Board, error) {
	b, err := findBoard(ctx, tx, v, id)
	if err == nil && !b.Deleted.IsZero() {
		err = errNoBoard
	}
	return b, err
}

// takeRevision takes the board's next revision, or says why the change can't be made.
// From here on nobody else can change the board.
func (bs *Boards) takeRevision(ctx context.Context, tx *sqldb.Tx, v Viewer, id string, m Match) (Board, error) {
	if !ids.Valid(id) {
		return Board{}, errNoBoard
	}
	if !m.Strict || len(m.Revisions) > 0 {
		b, err := advanceRevision(ctx, tx, v.AccountID, id, m)
		if err == nil {
			tx.AfterCommit(func() { bs.Hub.Tell(id) })
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

// Rename gives a board another name. It comes back with at most limit of its
// nodes.
func (bs *Boards) Rename(ctx context.Context, v Viewer, id string, m Match, name string, limit int) (b Board, p Page, err error) {
	if name, err = checkName(name); err != nil {
		return Board{}, Page{}, err
	}
	err = bs.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if b, err = bs.takeRevision(ctx, tx, v, id, m); err != nil {
			return err
		}
		b.Name = name
		if err := setName(ctx, tx, b); err != nil {
			return err
		}
		p, err = readPage(ctx, tx, b, nil, limit)
		return err
	})
	return b, p, err
}

// Delete puts a board into the trash, for who made it and for managers of the
// account.
func (bs *Boards) Delete(ctx context.Context, v Viewer, id string, m Match) error {
	return bs.DB.Write(ctx, func(tx *sqldb.Tx) error {
		b, err := findLive(ctx, tx, v, id)
		if err != nil {
			return err
		}
		if err := v.mayRemove(b); err != nil {
			return err
		}
		if b, err = bs.takeRevision(ctx, tx, v, id, m); err != nil {
			return err
		}
		return markDeleted(ctx, tx, b)
	})
}

// Restore takes a board out of the trash, for who could have deleted it. One
// that is not there stays as it is. It comes back with at most limit of its
// nodes.
func (bs *Boards) Restore(ctx context.Context, v Viewer, id string, limit int) (b Board, p Page, err error) {
	err = bs.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if b, err = findBoard(ctx, tx, v, id); err != nil {
			return err
		}
		if err := v.mayRemove(b); err != nil {
			return err
		}
		if !b.Deleted.IsZero() {
			if err := checkRoom(ctx, tx, v); err != nil {
				return err
			}
			if err := restoreBoard(ctx, tx, b); err != nil {
				return err
			}
			tx.AfterCommit(func() { bs.Hub.Tell(id) })
		}
		// Another may have been quicker, or it is gone for good by now.
		if b, err = findLive(ctx, tx, v, id); err != nil {
			return err
		}
		p, err = readPage(ctx, tx, b, nil, limit)
		return err
	})
	return b, p, err
}
