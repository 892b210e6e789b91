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

// GET /api/v2/boards/{board_id}/events streams the states of a board and its
// nodes until the client leaves or the board is deleted. Events are states, not
// steps: two changes of a node may arrive as one event.
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

// lastRevision returns the Last-Event-ID header if it is a revision.
func lastRevision(header http.Header) (int64, bool) {
	n, err := strconv.ParseInt(header.Get("Last-Event-ID"), 10, 64)
	return n, err == nil && n >= 0
}

// maxPagesAtOnce bounds the pages of nodes that one update sends.
const maxPagesAtOnce = 10

// boardStream is the state of one event stream about a board.
type boardStream struct {
	h     *Handler
	call  boardCall
	mark  board.Mark  // everything up to here was sent
	board board.Board // as it was sent last; zero before the first event
}

// sendChanges sends the events that are new. Each event has the revision up to
// which everything was sent, so a client that was disconnected can resume after
// any event.
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
		if i > 0 { // a slow client may have lost access meanwhile
			if err := s.call.Reauthorize(ctx); err != nil {
				return false, err
			}
		}
		n, err := boards.ListChanges(ctx, s.call.Principal, s.call.boardID, s.mark, nodePage)
		if fault.Is(err, fault.NotFound) && s.board.ID != "" { // removed for good
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
