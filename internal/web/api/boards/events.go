package api

import (
	"context"
	"net/http"
	"strconv"

	"atelier/internal/base/fault"
	"atelier/internal/board"
	"atelier/internal/web/api/wire"
)

// streamBoard tells of a board and its nodes until the client leaves or the
// board is deleted. The events are states and not steps: what changed twice
// before it could be told is told once.
func (s *Server) streamBoard(w http.ResponseWriter, r *http.Request) error {
	c, err := boardCallOf(r)
	if err != nil {
		return err
	}
	leave, ok := s.streams.Take(c.caller.PersonID)
	if !ok {
		return tooManyStreams()
	}
	defer leave()
	news, stop := s.Boards.Hub.Follow(c.id)
	defer stop()
	ctx := r.Context()
	revision, err := s.Boards.Revision(ctx, c.viewer, c.id)
	if err != nil {
		return err
	}
	t := boardTale{s: s, c: c, mark: board.Mark{Revision: revision}}
	if known, ok := lastRevision(r.Header); ok {
		t.mark.Revision = known
	}
	return s.stream(w, r, news, func(e *events) (bool, error) { return t.tell(ctx, e) })
}

// lastRevision reads Last-Event-ID. Whatever is no revision is as good as none.
func lastRevision(h http.Header) (int64, bool) {
	n, err := strconv.ParseInt(h.Get("Last-Event-ID"), 10, 64)
	return n, err == nil && n >= 0
}

// atOnce is how many pages of nodes are told before the stream looks around.
const atOnce = 10

// boardTale is what somebody was told about a board.
type boardTale struct {
	s     *Server
	c     boardCall
	mark  board.Mark
	board board.Board // as it was told last; zero: not yet
}

// tell sends what is new. Every event carries the revision up to which all was
// told: who is cut off after one goes on from it, and misses nothing.
func (t *boardTale) tell(ctx context.Context, e *events) (ended bool, err error) {
	revision, err := t.s.Boards.Revision(ctx, t.c.viewer, t.c.id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	if err == nil && t.board.ID != "" && revision == t.mark.Revision {
		return false, nil
	}
	changed := false
	more := true
	for i := 0; more && i < atOnce; i++ {
		if i > 0 { // who takes them slowly may have lost access meanwhile
			if err := t.c.reauthorize(ctx); err != nil {
				return false, err
			}
		}
		n, err := t.s.Boards.Since(ctx, t.c.viewer, t.c.id, t.mark, nodePage)
		if fault.Is(err, fault.NotFound) && t.board.ID != "" { // removed for good, and nobody can say more than was known
			return true, e.tell(event{t.mark.Revision, "deleted", asSummary(t.board)})
		}
		if err != nil {
			return false, err
		}
		if !n.Board.Deleted.IsZero() {
			return true, e.tell(event{n.Board.Revision, "deleted", asSummary(n.Board)})
		}
		t.mark = n.Mark
		more = n.More
		var all []event
		if len(n.Nodes) > 0 {
			changed = true
			all = append(all, event{n.Mark.Revision, "nodes", t.change(n)})
		}
		switch {
		case n.Lost:
			all = append(all, event{n.Mark.Revision, "reset", asSummary(n.Board)})
			t.board = n.Board
		case !more && (!changed || t.board.Name != n.Board.Name):
			all = append(all, event{n.Mark.Revision, "board", asSummary(n.Board)})
			t.board = n.Board
		}
		if err := e.tell(all...); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (t *boardTale) change(n board.News) wire.BoardChange {
	c := wire.BoardChange{Revision: n.Mark.Revision, Put: []wire.Node{}, Deleted: []string{}}
	for _, one := range n.Nodes {
		if one.Deleted.IsZero() {
			c.Put = append(c.Put, t.s.asNode(one, t.c.caller.PersonID))
		} else {
			c.Deleted = append(c.Deleted, one.ID)
		}
	}
	return c
}
