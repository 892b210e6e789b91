package board_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/board"
	"atelier/internal/people/principal"
)

// copied is what a follower knows.
type copied struct {
	mark  board.Mark
	texts map[string]string // by node
}

// learn applies what is new, at most so much at once, and gives in how many
// steps. Between the steps something may happen.
func (c *copied) learn(w fixture, v principal.Principal, id string, limit int, between func()) (steps int) {
	w.Helper()
	for {
		n, err := w.boards.ListChanges(w.Context(), v, id, c.mark, limit)
		w.OK(err)
		if n.Lost {
			w.Fatalf("lost at %+v", c.mark)
		}
		for _, one := range n.Nodes {
			if one.Deleted.IsZero() {
				c.texts[one.ID] = one.Text
			} else {
				delete(c.texts, one.ID)
			}
		}
		if n.Mark.Revision < c.mark.Revision {
			w.Errorf("the mark goes back from %+v to %+v", c.mark, n.Mark)
		}
		c.mark = n.Mark
		if steps++; !n.More {
			return steps
		}
		between()
	}
}

// TestFollowersAreNotMisled changes a board at random while somebody follows
// it in small steps, and forgets in between where they stood within a
// revision.
func TestFollowersAreNotMisled(t *testing.T) {
	each(t, func(w fixture) {
		anna := own(w.Person(0))
		b := w.board(anna)
		random := rand.New(rand.NewPCG(1, 2))
		count := 0
		change := func() {
			_, nodes := w.get(anna, b.ID)
			var c board.Changes
			for range 1 + random.IntN(4) {
				count++
				c.Create = append(c.Create, text(fmt.Sprint(count)))
			}
			for _, n := range nodes {
				switch random.IntN(5) {
				case 0:
					c.Delete = append(c.Delete, n.ID)
				case 1:
					count++
					c.Update = append(c.Update, board.Update{ID: n.ID, Change: board.Change{Text: ptr(fmt.Sprint(count))}})
				}
			}
			_, err := w.boards.ChangeNodes(w.Context(), anna, b.ID, board.Match{}, c)
			w.OK(err)
		}
		follower := copied{mark: board.Mark{Revision: 1}, texts: map[string]string{}}
		long := 0
		for range 25 {
			change()
			if follower.learn(w, anna, b.ID, 3, func() {
				switch random.IntN(6) {
				case 0:
					change()
				case 1: // cut off, and back with the revision alone
					follower.mark = board.Mark{Revision: follower.mark.Revision}
				}
			}) > 2 {
				long++
			}
			want := map[string]string{}
			_, nodes := w.get(anna, b.ID)
			for _, n := range nodes {
				want[n.ID] = n.Text
			}
			if !maps.Equal(follower.texts, want) {
				w.Fatalf("the follower has %v, the board %v", follower.texts, want)
			}
		}
		if long == 0 {
			w.Error("nothing took several steps")
		}
	})
}

// TestManySweepAtOnce is what several nodes do.
func TestManySweepAtOnce(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna := w.Context(), own(w.Person(0))
		var trash []string
		for range 40 {
			b := w.board(anna)
			n, err := w.boards.AddNode(ctx, anna, b.ID, board.Match{}, text("x"))
			w.OK(err)
			_, err = w.boards.RemoveNode(ctx, anna, b.ID, board.Match{}, n.ID)
			w.OK(err)
			if len(trash) < 10 {
				w.OK(w.boards.DeleteBoard(ctx, anna, b.ID, board.Match{}))
				trash = append(trash, b.ID)
			}
		}
		w.Pass(31 * 24 * time.Hour)
		back := make([]bool, len(trash))
		dbtest.Together(5, func(i int) {
			if i > 0 {
				if err := w.boards.SweepDeleted(ctx); err != nil {
					w.Error(err)
				}
				return
			}
			for j, id := range trash { // somebody wants them back
				_, _, err := w.boards.RestoreBoard(ctx, anna, id, 1)
				if back[j] = err == nil; !back[j] {
					w.refused(err, fault.NotFound)
				}
			}
		})
		for j, id := range trash {
			if _, err := w.boards.GetRevision(ctx, anna, id); (err == nil) != back[j] {
				w.Errorf("the board was restored: %v, and is there: %v", back[j], err == nil)
			}
		}
		if left := w.Count(`SELECT count(*) FROM board_node`) + w.Count(`SELECT count(*) FROM board WHERE deleted IS NOT NULL`); left != 0 {
			w.Errorf("%d rows are left", left)
		}
	})
}

func TestSweep(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna := w.Context(), own(w.Person(0))
		b, idle, trash := w.board(anna), w.board(anna), w.board(anna)
		var drafts []board.Draft
		for range 450 {
			drafts = append(drafts, text("x"))
		}
		made, err := w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{Create: drafts})
		w.OK(err)
		w.add(anna, trash.ID, text("x"))
		remove := func(nodes []board.Node) {
			var c board.Changes
			for _, n := range nodes {
				c.Delete = append(c.Delete, n.ID)
			}
			_, err := w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, c)
			w.OK(err)
		}
		lost := func(revision int64) bool {
			n, err := w.boards.ListChanges(ctx, anna, b.ID, board.Mark{Revision: revision}, 1000)
			w.OK(err)
			return n.Lost
		}
		remove(made.Created[:200])    // 3
		remove(made.Created[200:300]) // 4
		w.OK(w.boards.DeleteBoard(ctx, anna, trash.ID, board.Match{}))
		w.Pass(23 * time.Hour)
		remove(made.Created[300:301]) // 5
		w.OK(w.boards.SweepDeleted(ctx))
		if lost(0) || w.Count(`SELECT count(*) FROM board_node WHERE deleted IS NOT NULL`) != 301 {
			w.Error("what is younger than a day was forgotten")
		}
		w.Pass(2 * time.Hour)
		w.OK(w.boards.SweepDeleted(ctx))
		if left := w.Count(`SELECT count(*) FROM board_node WHERE deleted IS NOT NULL`); left != 1 {
			w.Errorf("%d deleted nodes are left, want 1", left)
		}
		for revision, want := range map[int64]bool{0: true, 2: true, 3: true, 4: false, 5: false} {
			if got := lost(revision); got != want {
				w.Errorf("after revision %d it is lost: %v", revision, got)
			}
		}
		if got, _ := w.get(anna, b.ID); got.Revision != 5 || got.Nodes != 149 {
			w.Errorf("the board = %+v", got)
		}
		// The trash is emptied after Keep.
		w.Pass(28 * 24 * time.Hour)
		w.OK(w.boards.SweepDeleted(ctx))
		if _, _, err := w.boards.RestoreBoard(ctx, anna, trash.ID, 1); err != nil {
			w.Errorf("restore after 29 days: %v", err)
		}
		w.OK(w.boards.DeleteBoard(ctx, anna, trash.ID, board.Match{}))
		w.Pass(31 * 24 * time.Hour)
		forever := *w.boards
		forever.Keep = 0
		w.OK(forever.SweepDeleted(ctx))
		if n := w.Count(`SELECT count(*) FROM board`); n != 3 {
			w.Errorf("where they are kept for ever there are %d", n)
		}
		w.OK(w.boards.SweepDeleted(ctx))
		if n := w.Count(`SELECT count(*) FROM board`); n != 2 {
			w.Errorf("after the sweep there are %d", n)
		}
		w.get(anna, idle.ID)
	})
}
