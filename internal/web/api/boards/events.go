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
	stream := boardStream{h: h, call: call, mark: board.Mark{Revision: revision}}
	if known, ok := lastRevision(r.Header); ok {
		stream.mark.Revision = known
	}
	return h.Streams.SendEvents(w, r, changes, func(events *rest.EventWriter) (bool, error) { return stream.sendChanges(ctx, events) })
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

// boardStream is the state of one event stream of a board.
type boardStream struct {
	h     *Handler
	call  boardCall
	mark  board.Mark  // position up to which all changes were sent
	board board.Board // the board as it was last sent; zero before the first event
}

// sendChanges sends the new events of a board. The id of each event is the
// revision up to which all changes were sent, so a disconnected client can
// resume after any event.
func (s *boardStream) sendChanges(ctx context.Context, events *rest.EventWriter) (ended bool, err error) {
	boards := s.h.Boards
	revision, err := boards.GetRevision(ctx, s.call.Principal, s.call.boardID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	if err == nil && s.board.ID != "" && revision == s.mark.Revision {
		return false, nil
	}

	hasChanges := false
	hasMore := true
	for i := 0; hasMore && i < maxPagesAtOnce; i++ {
		if i > 0 { // a slow client may have lost access in the meantime
			if err := s.call.Reauthorize(ctx); err != nil {
				return false, err
			}
		}
		n, err := boards.ListChanges(ctx, s.call.Principal, s.call.boardID, s.mark, nodePage)
		if fault.Is(err, fault.NotFound) && s.board.ID != "" { // the board was deleted permanently
			return true, events.SendAll(rest.Event{ID: s.mark.Revision, Name: "deleted", Data: asSummary(s.board)})
		}
		if err != nil {
			return false, err
		}
		if !n.Board.Deleted.IsZero() {
			return true, events.SendAll(rest.Event{ID: n.Board.Revision, Name: "deleted", Data: asSummary(n.Board)})
		}

		s.mark = n.Mark
		hasMore = n.More
		var all []rest.Event
		if len(n.Nodes) > 0 {
			hasChanges = true
			all = append(all, rest.Event{ID: n.Mark.Revision, Name: "nodes", Data: s.asBoardChange(n)})
		}
		switch {
		case n.Lost:
			all = append(all, rest.Event{ID: n.Mark.Revision, Name: "reset", Data: asSummary(n.Board)})
			s.board = n.Board
		case !hasMore && (!hasChanges || s.board.Name != n.Board.Name):
			all = append(all, rest.Event{ID: n.Mark.Revision, Name: "board", Data: asSummary(n.Board)})
			s.board = n.Board
		}
		if err := events.SendAll(all...); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (s *boardStream) asBoardChange(n board.Delta) wire.BoardChange {
	change := wire.BoardChange{Revision: n.Mark.Revision, Put: []wire.Node{}, Deleted: []string{}}
	for _, one := range n.Nodes {
		if one.Deleted.IsZero() {
			change.Put = append(change.Put, s.h.asNode(one, s.call.Principal.PersonID))
		} else {
			change.Deleted = append(change.Deleted, one.ID)
		}
	}
	return change
}
