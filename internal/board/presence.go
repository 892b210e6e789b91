package board

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

const (
	// presenceLifetime is how long a person is shown on a board after a call of
	// ShowViewer, and after the process that serves their event stream has
	// stopped calling KeepStreams.
	presenceLifetime = 30 * time.Second
	// MaxSelected is the maximum number of selected nodes that a viewer shows.
	MaxSelected = 100
	// maxViewers is the maximum number of viewers of a board that are listed.
	maxViewers = 100
)

// Point is a place on a board.
type Point struct {
	X float64
	Y float64
}

// ViewerState is what the others see of a person who looks at a board.
type ViewerState struct {
	PersonID string
	Name     string
	Cursor   *Point   // nil if the cursor is not on the board
	Selected []string // ids of the selected nodes
}

// Glimpse is the state of a board that clients which follow it compare: its
// revision and its viewers.
type Glimpse struct {
	Revision int64         // 0 if the board is deleted
	Viewers  []ViewerState // sorted by the ids of the people
}

// ShowViewer shows the person to the other viewers of a board, with a cursor
// (nil for none) and the ids of the selected nodes, for presenceLifetime or
// until the next call.
func (bs *Boards) ShowViewer(ctx context.Context, v principal.Principal, boardID string, cursor *Point, selected []string) error {
	if err := checkPresence(cursor, selected); err != nil {
		return err
	}
	return bs.putPresence(ctx, v, presence{
		boardID:  boardID,
		personID: v.PersonID,
		cursor:   cursor,
		selected: selected,
	})
}

// putPresence stores the presence of a person who may read the board, and
// notifies the board's other viewers.
func (bs *Boards) putPresence(ctx context.Context, v principal.Principal, p presence) error {
	return bs.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := findLive(ctx, tx, v, p.boardID); err != nil {
			return err
		}
		tx.AfterCommit(func() { bs.Hub.Notify(p.boardID) })
		return putPresence(ctx, tx, p)
	})
}

func checkPresence(cursor *Point, selected []string) error {
	var problems []fault.Field
	checkCoordinate := func(path string, value float64) {
		if !(value >= -far && value <= far) { // also refuses NaN
			problems = append(problems, fault.Field{Path: path, Message: "Must be a number from -1,000,000,000 to 1,000,000,000."})
		}
	}
	if cursor != nil {
		checkCoordinate("cursor.x", cursor.X)
		checkCoordinate("cursor.y", cursor.Y)
	}
	if len(selected) > MaxSelected {
		problems = append(problems, fault.Field{Path: "selected", Message: fmt.Sprintf("Must have at most %d nodes.", MaxSelected)})
		selected = nil
	}
	for i, id := range selected {
		if !ids.Valid(id) {
			problems = append(problems, fault.Field{Path: "selected." + strconv.Itoa(i), Message: "Must be a valid id."})
		}
	}
	if len(problems) == 0 {
		return nil
	}

	f := fault.New(fault.Invalid, "The cursor or the selection is invalid.")
	f.Fields = problems
	return f
}

// EnterBoard shows the person to the other viewers of a board while an event
// stream is open. node identifies the process that serves the stream and must
// call KeepStreams.
func (bs *Boards) EnterBoard(ctx context.Context, v principal.Principal, boardID, node, stream string) error {
	return bs.putPresence(ctx, v, presence{
		boardID:  boardID,
		personID: v.PersonID,
		stream:   stream,
		node:     node,
	})
}

// LeaveBoard ends EnterBoard. If the person has no other stream, their cursor
// and selection disappear too.
func (bs *Boards) LeaveBoard(ctx context.Context, personID, boardID, stream string) error {
	return bs.DB.Write(ctx, func(tx *sqldb.Tx) error {
		tx.AfterCommit(func() { bs.Hub.Notify(boardID) })
		if err := deleteStream(ctx, tx, boardID, personID, stream); err != nil {
			return err
		}
		return deleteCursorWithoutStream(ctx, tx, boardID, personID)
	})
}

// KeepStreams extends the presence of all viewers whose event streams the
// process serves, and removes expired rows. A process with streams must call it
// every third of presenceLifetime.
func (bs *Boards) KeepStreams(ctx context.Context, node string) error {
	return bs.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := extendStreams(ctx, tx, node); err != nil {
			return err
		}
		return deleteExpired(ctx, tx)
	})
}

// ReadGlimpsesUnscoped returns the states of boards by board id, without
// checking who may see them.
func ReadGlimpsesUnscoped(ctx context.Context, tx *sqldb.Tx, boardIDs []string) (map[string]Glimpse, error) {
	revisions, err := readRevisions(ctx, tx, boardIDs)
	if err != nil {
		return nil, err
	}
	viewers, err := listViewers(ctx, tx, boardIDs)
	if err != nil {
		return nil, err
	}

	all := make(map[string]Glimpse, len(boardIDs))
	for _, id := range boardIDs {
		all[id] = Glimpse{Revision: revisions[id], Viewers: viewers[id]}
	}
	return all, nil
}

// nameFrom returns the display name of a person: the part of the e-mail address
// before the @.
func nameFrom(email string) string {
	if i := strings.LastIndexByte(email, '@'); i > 0 {
		return email[:i]
	}
	return email
}
