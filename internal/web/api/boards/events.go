package boards

import (
	"context"
	"net/http"
	"strconv"

	"atelier/internal/base/fault"
	"atelier/internal/board"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// streamBoard serves GET /api/v2/boards/{board_id}/events: it streams the
// states of a board and its nodes until the client disconnects or the board is
// deleted. An event contains the current state, not a single change: two
// changes of a node may arrive as one event.
func (h *Handler) streamBoard(w http.ResponseWriter, r *http.Request) error {
	call, err := readBoardCall(r)
	if err != nil {
		return err
	}
	release, err := h.Streams.TakeSlot(call.Principal.PersonID)
	if err != nil {
		return err
	}
	defer release()
	changes, unfollow := h.Boards.Hub.Follow(call.boardID)
	defer unfollow()

	ctx := r.Context()
	revision, err := h.Boards.GetRevision(ctx, call.Principal, call.boardID)
	if err != nil {
		return err
	}
	if known, ok := lastRevision(r.Header); ok {
		revision = known
	}
	follower := h.NewFollower(call.Call, call.boardID, revision)
	return h.Streams.SendEvents(w, r, changes, func(events *rest.EventWriter) (bool, error) {
		return follower.SendChanges(ctx, func(all ...FollowerEvent) error {
			return events.SendAll(rest.Convert(all, FollowerEvent.asEvent)...)
		})
	})
}

// lastRevision returns the board revision in the Last-Event-ID header, and
// whether the header contains a valid revision.
func lastRevision(header http.Header) (int64, bool) {
	n, err := strconv.ParseInt(header.Get("Last-Event-ID"), 10, 64)
	return n, err == nil && n >= 0
}

// maxPagesAtOnce is the maximum number of pages of nodes that one update of a
// stream sends.
const maxPagesAtOnce = 10

// Follower reads the events of a board for one stream.
type Follower struct {
	h       *Handler
	call    *rest.Call
	boardID string
	mark    board.Mark  // position up to which all changes were sent
	board   board.Board // the board as it was last sent; zero before the first event
}

// FollowerEvent is an event of a board. Its names and data are those of GET
// /api/v2/boards/{board_id}/events.
type FollowerEvent struct {
	// Revision is the revision up to which all changes were sent, so a
	// disconnected client can resume after any event.
	Revision int64
	Name     string
	Data     any
}

func (e FollowerEvent) asEvent() rest.Event {
	return rest.Event{ID: strconv.FormatInt(e.Revision, 10), Name: e.Name, Data: e.Data}
}

// NewFollower returns a Follower for a board of the caller's account. The first
// event has the changes since the revision.
func (h *Handler) NewFollower(call *rest.Call, boardID string, revision int64) *Follower {
	return &Follower{
		h:       h,
		call:    call,
		boardID: boardID,
		mark:    board.Mark{Revision: revision},
	}
}

// BoardID returns the id of the board.
func (f *Follower) BoardID() string { return f.boardID }

// HasSent reports whether the client has received the board at the revision.
func (f *Follower) HasSent(revision int64) bool {
	return f.board.ID != "" && f.mark == board.Mark{Revision: revision}
}

// SendChanges passes the new events of the board to send. ended reports that
// the board was deleted.
func (f *Follower) SendChanges(ctx context.Context, send func(...FollowerEvent) error) (ended bool, err error) {
	boards := f.h.Boards
	revision, err := boards.GetRevision(ctx, f.call.Principal, f.boardID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	if err == nil && f.board.ID != "" && revision == f.mark.Revision {
		return false, nil
	}

	hasChanges := false
	hasMore := true
	for i := 0; hasMore && i < maxPagesAtOnce; i++ {
		if i > 0 { // a slow client may have lost access in the meantime
			if err := f.call.Reauthorize(ctx); err != nil {
				return false, err
			}
		}
		n, err := boards.ListChanges(ctx, f.call.Principal, f.boardID, f.mark, nodePage)
		if fault.Is(err, fault.NotFound) && f.board.ID != "" { // the board was deleted permanently
			return true, send(FollowerEvent{Revision: f.mark.Revision, Name: "deleted", Data: asSummary(f.board)})
		}
		if err != nil {
			return false, err
		}
		if !n.Board.Deleted.IsZero() {
			return true, send(FollowerEvent{Revision: n.Board.Revision, Name: "deleted", Data: asSummary(n.Board)})
		}

		f.mark = n.Mark
		hasMore = n.More
		var all []FollowerEvent
		if len(n.Nodes) > 0 {
			hasChanges = true
			all = append(all, FollowerEvent{Revision: n.Mark.Revision, Name: "nodes", Data: f.asBoardChange(n)})
		}
		switch {
		case n.Lost:
			all = append(all, FollowerEvent{Revision: n.Mark.Revision, Name: "reset", Data: asSummary(n.Board)})
			f.board = n.Board
		case !hasMore && (!hasChanges || f.board.Name != n.Board.Name):
			all = append(all, FollowerEvent{Revision: n.Mark.Revision, Name: "board", Data: asSummary(n.Board)})
			f.board = n.Board
		}
		if err := send(all...); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (f *Follower) asBoardChange(n board.Delta) wire.BoardChange {
	change := wire.BoardChange{
		BoardID:  f.boardID,
		Revision: n.Mark.Revision,
		Put:      []wire.Node{},
		Deleted:  []string{},
	}
	for _, one := range n.Nodes {
		if one.Deleted.IsZero() {
			change.Put = append(change.Put, f.h.asNode(one, f.call.Principal.PersonID))
		} else {
			change.Deleted = append(change.Deleted, one.ID)
		}
	}
	return change
}
