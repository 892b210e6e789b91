package board_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/board"
	"atelier/internal/people/principal"
)

func TestALifeOfABoard(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna := w.Context(), own(w.Person(0))
		b, err := w.boards.CreateBoard(ctx, anna, "  Autumn  ")
		w.OK(err)
		if b.Name != "Autumn" || b.Revision != 1 || b.TeamID() != "" || !ids.Valid(b.ID) || b.Nodes != 0 {
			w.Errorf("a new board = %+v", b)
		}
		w.Pass(time.Second)
		renamed, page, err := w.boards.RenameBoard(ctx, anna, b.ID, board.Match{}, "Winter", 10)
		w.OK(err)
		if renamed.Name != "Winter" || renamed.Revision != 2 || len(page.Nodes) != 0 || !renamed.Updated.After(b.Updated) || !renamed.Created.Equal(b.Created) {
			w.Errorf("renamed = %+v", renamed)
		}
		n := w.add(anna, b.ID, text("Mood"))
		if n.Revision != 3 || n.Z != 0 {
			w.Errorf("the first node = %+v", n)
		}
		w.OK(w.boards.DeleteBoard(ctx, anna, b.ID, board.Match{}))
		if _, _, err := w.boards.GetBoard(ctx, anna, b.ID, nil, 10); !fault.Is(err, fault.NotFound) {
			w.Errorf("a deleted board = %v", err)
		}
		w.refused(w.boards.DeleteBoard(ctx, anna, b.ID, board.Match{}), fault.NotFound)
		_, err = w.boards.AddNode(ctx, anna, b.ID, board.Match{}, text("late"))
		w.refused(err, fault.NotFound)
		for trash, want := range map[bool]int{false: 0, true: 1} {
			if all, err := w.boards.ListBoards(ctx, anna, trash, nil, 10); err != nil || len(all) != want || trash && all[0].Deleted.IsZero() {
				w.Errorf("boards with deleted %v = %+v, %v", trash, all, err)
			}
		}
		back, page, err := w.boards.RestoreBoard(ctx, anna, b.ID, 10)
		w.OK(err)
		if back.Revision != 5 || !back.Deleted.IsZero() || back.Name != "Winter" || len(page.Nodes) != 1 || page.Nodes[0].Text != "Mood" || page.Nodes[0].Revision != 3 {
			w.Errorf("restored = %+v with %+v", back, page)
		}
		again, _, err := w.boards.RestoreBoard(ctx, anna, b.ID, 10)
		w.OK(err)
		if again.Revision != 5 {
			w.Errorf("restored twice = %+v", again)
		}
	})
}

func TestNamesOfBoards(t *testing.T) {
	each(t, func(w fixture) {
		anna := own(w.Person(0))
		b := w.board(anna)
		for _, name := range []string{"", "   ", strings.Repeat("ü", 201), "a\nb", "a\x00b", "\xff"} {
			_, err := w.boards.CreateBoard(w.Context(), anna, name)
			w.refused(err, fault.Invalid, "name")
			_, _, err = w.boards.RenameBoard(w.Context(), anna, b.ID, board.Match{}, name, 1)
			w.refused(err, fault.Invalid, "name")
		}
		if _, err := w.boards.CreateBoard(w.Context(), anna, strings.Repeat("ü", 200)); err != nil {
			w.Error(err)
		}
	})
}

func TestWhoseBoardsTheyAre(t *testing.T) {
	each(t, func(w fixture) {
		ctx, annaID, bertID, team := w.Context(), w.Person(0), w.Person(0), w.Team(0)
		anna := own(annaID)
		mine := w.board(anna)
		node := w.add(anna, mine.ID, text("mine"))
		ours := w.board(principal.Principal{PersonID: annaID, AccountID: team, TeamID: team})
		if ours.TeamID() != team {
			w.Errorf("the team's board is of %q", ours.TeamID())
		}
		for _, v := range []principal.Principal{own(bertID), manager(annaID, team), manager(annaID, ids.New())} {
			for _, id := range []string{mine.ID, ids.New(), "x", "", "\x00", mine.ID + "x"} {
				_, _, err := w.boards.GetBoard(ctx, v, id, nil, 1)
				w.refused(err, fault.NotFound)
				_, _, err = w.boards.RenameBoard(ctx, v, id, board.Match{}, "x", 1)
				w.refused(err, fault.NotFound)
				w.refused(w.boards.DeleteBoard(ctx, v, id, board.Match{}), fault.NotFound)
				_, _, err = w.boards.RestoreBoard(ctx, v, id, 1)
				w.refused(err, fault.NotFound)
				_, err = w.boards.AddNode(ctx, v, id, board.Match{Strict: true}, text("x"))
				w.refused(err, fault.NotFound)
				_, err = w.boards.SetNode(ctx, v, id, board.Match{}, board.Update{ID: node.ID, Change: board.Change{X: ptr(1.0)}})
				w.refused(err, fault.NotFound)
				_, err = w.boards.RemoveNode(ctx, v, id, board.Match{}, node.ID)
				w.refused(err, fault.NotFound)
				_, err = w.boards.GetRevision(ctx, v, id)
				w.refused(err, fault.NotFound)
				_, err = w.boards.ListChanges(ctx, v, id, board.Mark{}, 1)
				w.refused(err, fault.NotFound)
			}
		}
		// Every member changes the team's boards; those who made them or manage delete them.
		bert, chief := principal.Principal{PersonID: bertID, AccountID: team, TeamID: team}, manager(bertID, team)
		w.add(bert, ours.ID, text("ours"))
		w.refused(w.boards.DeleteBoard(ctx, bert, ours.ID, board.Match{}), fault.Forbidden)
		_, _, err := w.boards.RestoreBoard(ctx, bert, ours.ID, 1)
		w.refused(err, fault.Forbidden)
		w.OK(w.boards.DeleteBoard(ctx, chief, ours.ID, board.Match{}))
		_, _, err = w.boards.RestoreBoard(ctx, bert, ours.ID, 1)
		w.refused(err, fault.Forbidden)
		_, _, err = w.boards.RestoreBoard(ctx, principal.Principal{PersonID: annaID, AccountID: team, TeamID: team}, ours.ID, 1)
		w.OK(err)
		if _, nodes := w.get(anna, mine.ID); len(nodes) != 1 || nodes[0].Text != "mine" {
			w.Errorf("after all that: %+v", nodes)
		}
		// A node of one board is none of another.
		other := w.board(anna)
		_, err = w.boards.RemoveNode(ctx, anna, other.ID, board.Match{}, node.ID)
		w.refused(err, fault.NotFound)
	})
}

func TestMatches(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna := w.Context(), own(w.Person(0))
		b := w.board(anna)
		at := func(revisions ...int64) board.Match { return board.Match{Strict: true, Revisions: revisions} }
		revision := int64(1)
		for name, x := range map[string]struct {
			match func() board.Match
			ok    bool
		}{
			"any":            {func() board.Match { return board.Match{} }, true},
			"the present":    {func() board.Match { return at(revision) }, true},
			"among others":   {func() board.Match { return at(900, revision, 901, 902, 903, 904) }, true},
			"the last":       {func() board.Match { return at(revision - 1) }, false},
			"the next":       {func() board.Match { return at(revision + 1) }, false},
			"none":           {func() board.Match { return at() }, false},
			"not among them": {func() board.Match { return at(900, 901) }, false},
		} {
			n, err := w.boards.AddNode(ctx, anna, b.ID, x.match(), text(name))
			if x.ok {
				w.OK(err)
				if revision++; n.Revision != revision {
					w.Errorf("%s: the revision is %d, want %d", name, n.Revision, revision)
				}
				continue
			}
			w.refused(err, fault.PreconditionFailed)
			if f, _ := err.(*fault.Error); f != nil && f.Details["revision"] != revision {
				w.Errorf("%s: the conflict is with %v, want %d", name, f.Details["revision"], revision)
			}
		}
		w.refused(w.boards.DeleteBoard(ctx, anna, b.ID, at(1)), fault.PreconditionFailed)
		_, _, err := w.boards.RenameBoard(ctx, anna, b.ID, at(1), "x", 1)
		w.refused(err, fault.PreconditionFailed)
		if got, nodes := w.get(anna, b.ID); got.Revision != revision || len(nodes) != 3 || got.Name != "Board" {
			w.Errorf("at last %+v with %d nodes", got, len(nodes))
		}
		w.OK(w.boards.DeleteBoard(ctx, anna, b.ID, at(revision)))
	})
}

// TestAccountsHaveSoManyBoards fills an account but for two, and lets many try.
func TestAccountsHaveSoManyBoards(t *testing.T) {
	each(t, func(w fixture) {
		annaID, bertID, team := w.Person(0), w.Person(0), w.Team(0)
		for i := range board.MaxBoards - 2 {
			w.Exec(`INSERT INTO board (id, account_id, person_id, name, revision, nodes, forgotten, created, updated) VALUES ($1, $2, $3, 'x', 1, 0, 0, 1, 1)`,
				fmt.Sprintf("board%015d", i), team, annaID)
		}
		errs := make([]error, 6)
		dbtest.Together(len(errs), func(i int) {
			_, errs[i] = w.boards.CreateBoard(w.Context(), principal.Principal{PersonID: []string{annaID, bertID}[i%2], AccountID: team, TeamID: team}, "one more")
		})
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
			} else {
				w.refused(err, fault.Invalid)
			}
		}
		if made != 2 {
			w.Errorf("%d were made, want 2", made)
		}
		v := principal.Principal{PersonID: annaID, AccountID: team, TeamID: team}
		first := "board000000000000000"
		w.OK(w.boards.DeleteBoard(w.Context(), v, first, board.Match{}))
		w.board(v)
		_, _, err := w.boards.RestoreBoard(w.Context(), v, first, 1)
		w.refused(err, fault.Invalid)
	})
}

func TestListsOfBoardsGoByKey(t *testing.T) {
	each(t, func(w fixture) {
		anna := own(w.Person(0))
		var want []string
		for i := range 7 {
			if i%3 == 0 {
				w.Pass(time.Second) // some are of one moment
			}
			want = append(want, w.board(anna).ID)
		}
		var got []board.Board
		var after *board.Cursor
		for {
			some, err := w.boards.ListBoards(w.Context(), anna, false, after, 2)
			w.OK(err)
			if len(some) == 0 {
				break
			}
			got = append(got, some...)
			last := some[len(some)-1]
			after = &board.Cursor{Created: last.Created, ID: last.ID}
			w.board(anna) // which comes before all of them
		}
		if !slices.IsSortedFunc(got, func(a, b board.Board) int { return b.Created.Compare(a.Created) }) {
			w.Error("the newest is not first")
		}
		var ids []string
		for _, b := range got {
			ids = append(ids, b.ID)
		}
		slices.Sort(ids)
		if slices.Sort(want); !slices.Equal(ids, want) {
			w.Errorf("the pages have %v, want %v", ids, want)
		}
	})
}

func TestNobodyWhoIsNoMoreMakesBoards(t *testing.T) {
	each(t, func(w fixture) {
		anna, team := own(w.Person(0)), w.Team(0)
		w.Exec(`UPDATE team SET removed = TRUE WHERE id = $1`, team)
		_, err := w.boards.CreateBoard(w.Context(), principal.Principal{PersonID: anna.PersonID, AccountID: team, TeamID: team}, "x")
		w.refused(err, fault.Forbidden)
		w.Exec(`UPDATE person SET deleted = 1 WHERE id = $1`, anna.PersonID)
		_, err = w.boards.CreateBoard(w.Context(), anna, "x")
		w.refused(err, fault.Forbidden)
	})
}

func TestKeptAndErased(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := own(w.Person(0)), own(w.Person(0))
		first, second, theirs := w.board(anna), w.board(anna), w.board(bert)
		for _, b := range []board.Board{first, second} {
			w.add(anna, b.ID, text("a"))
			gone := w.add(anna, b.ID, text("b"))
			_, err := w.boards.RemoveNode(w.Context(), anna, b.ID, board.Match{}, gone.ID)
			w.OK(err)
		}
		w.add(bert, theirs.ID, text("c"))
		w.OK(w.boards.DeleteBoard(w.Context(), anna, second.ID, board.Match{}))
		seen := map[string]int{}
		w.Do(func(tx *sqldb.Tx) error {
			clear(seen)
			for _, trash := range []bool{false, true} {
				boards, err := board.List(w.Context(), tx, anna.AccountID, trash, nil, 10)
				if err != nil {
					return err
				}
				for _, b := range boards {
					nodes, err := board.NodesOf(w.Context(), tx, b, nil, 10)
					if err != nil {
						return err
					}
					seen[b.ID] = len(nodes)
				}
			}
			return nil
		})
		if len(seen) != 2 || seen[first.ID] != 1 || seen[second.ID] != 1 {
			w.Errorf("the boards are %v", seen)
		}
		for _, want := range []bool{true, true, false} {
			var more bool
			w.Do(func(tx *sqldb.Tx) (err error) {
				more, err = board.EraseSome(w.Context(), tx, anna.AccountID, 1)
				return err
			})
			if more != want {
				w.Errorf("more = %v, want %v", more, want)
			}
		}
		if left := w.Count(`SELECT count(*) FROM board`); left != 1 {
			w.Errorf("%d boards are left", left)
		}
		if left := w.Count(`SELECT count(*) FROM board_node`); left != 1 {
			w.Errorf("%d nodes are left", left)
		}
	})
}
