package board_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/board"
	"atelier/internal/people/principal"
)

// viewers returns the ids of the people who look at a board.
func (w fixture) viewers(boardID string) []string {
	w.Helper()
	all := []string{}
	for _, v := range w.glimpse(boardID).Viewers {
		all = append(all, v.PersonID)
	}
	return all
}

func (w fixture) glimpse(boardID string) board.Glimpse {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (map[string]board.Glimpse, error) {
		return board.ReadGlimpsesUnscoped(w.Context(), tx, []string{boardID})
	})[boardID]
}

func (w fixture) sees(boardID string, people ...string) {
	w.Helper()
	want := slices.Sorted(slices.Values(people))
	if got := w.viewers(boardID); !slices.Equal(got, want) {
		w.Errorf("the viewers are %q, want %q", got, want)
	}
}

func TestPresenceExpires(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna, bert, team := w.Context(), w.Person(0), w.Person(0), w.Team(0)
		as := func(id string) principal.Principal {
			return principal.Principal{PersonID: id, AccountID: team, TeamID: team}
		}
		b := w.board(as(anna))
		n := w.add(as(anna), b.ID, text("x"))

		w.OK(w.boards.ShowViewer(ctx, as(anna), b.ID, &board.Point{X: 1, Y: 2}, []string{n.ID}))
		w.OK(w.boards.EnterBoard(ctx, as(bert), b.ID, "node", "first"))
		w.OK(w.boards.EnterBoard(ctx, as(bert), b.ID, "node", "second"))
		w.sees(b.ID, anna, bert)
		if g := w.glimpse(b.ID); g.Revision != n.Revision {
			w.Errorf("the revision is %d, want %d", g.Revision, n.Revision)
		}

		w.Pass(20 * time.Second)
		w.OK(w.boards.KeepStreams(ctx, "node"))
		w.OK(w.boards.KeepStreams(ctx, "another node"))
		w.Pass(11 * time.Second)
		w.sees(b.ID, bert)

		w.OK(w.boards.ShowViewer(ctx, as(bert), b.ID, nil, nil))
		w.OK(w.boards.LeaveBoard(ctx, bert, b.ID, "first"))
		w.sees(b.ID, bert)
		w.OK(w.boards.LeaveBoard(ctx, bert, b.ID, "second"))
		w.sees(b.ID)

		w.OK(w.boards.ShowViewer(ctx, as(anna), b.ID, nil, nil))
		w.Pass(2 * time.Minute)
		w.OK(w.boards.KeepStreams(ctx, "node"))
		left := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (n int64, err error) {
			err = tx.QueryRow(ctx, `SELECT count(*) FROM board_presence`).Scan(&n)
			return n, err
		})
		if left != 0 {
			w.Errorf("%d expired rows are left", left)
		}
		w.OK(w.boards.DeleteBoard(ctx, as(anna), b.ID, board.Match{}))
		if g := w.glimpse(b.ID); g.Revision != 0 {
			w.Errorf("a deleted board is at revision %d", g.Revision)
		}
	})
}

func TestPresenceIsChecked(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna := w.Context(), own(w.Person(0))
		b := w.board(anna)
		for _, far := range nowhere {
			w.refused(w.boards.ShowViewer(ctx, anna, b.ID, &board.Point{X: far}, nil), fault.Invalid, "cursor.x")
			w.refused(w.boards.ShowViewer(ctx, anna, b.ID, &board.Point{Y: far}, nil), fault.Invalid, "cursor.y")
		}
		w.refused(w.boards.ShowViewer(ctx, anna, b.ID, nil, []string{ids.New(), "x"}), fault.Invalid, "selected.1")
		w.refused(w.boards.ShowViewer(ctx, anna, b.ID, nil, slices.Repeat([]string{ids.New()}, board.MaxSelected+1)), fault.Invalid, "selected")
		w.OK(w.boards.ShowViewer(ctx, anna, b.ID, &board.Point{X: math.Copysign(0, -1)}, slices.Repeat([]string{ids.New()}, board.MaxSelected)))
		for _, id := range []string{ids.New(), "x", ""} {
			w.refused(w.boards.ShowViewer(ctx, anna, id, nil, nil), fault.NotFound)
			w.refused(w.boards.EnterBoard(ctx, anna, id, "node", "stream"), fault.NotFound)
		}
		other := own(w.Person(0))
		w.refused(w.boards.ShowViewer(ctx, other, b.ID, nil, nil), fault.NotFound)
		w.refused(w.boards.EnterBoard(ctx, other, b.ID, "node", "stream"), fault.NotFound)
		w.sees(b.ID, anna.PersonID)
	})
}

func TestNodesNameWhoChangedThem(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna, bert, team := w.Context(), w.Person(0), w.Person(0), w.Team(0)
		as := func(id string) principal.Principal {
			return principal.Principal{PersonID: id, AccountID: team, TeamID: team}
		}
		b := w.board(as(anna))
		moved := w.add(as(anna), b.ID, text("moved"))
		kept := w.add(as(anna), b.ID, text("kept"))
		changed, err := w.boards.SetNode(ctx, as(bert), b.ID, board.Match{}, board.Update{ID: moved.ID, Change: board.Change{X: ptr(1.0)}})
		w.OK(err)
		if changed.PersonID != bert {
			w.Errorf("the change is of %q, want %q", changed.PersonID, bert)
		}
		_, nodes := w.get(as(anna), b.ID)
		for _, n := range nodes {
			if want := map[string]string{moved.ID: bert, kept.ID: anna}[n.ID]; n.PersonID != want {
				w.Errorf("node %s was changed by %q, want %q", n.Text, n.PersonID, want)
			}
		}
	})
}
