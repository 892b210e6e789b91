package board_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/people/principal"
)

func TestWhatNodesShow(t *testing.T) {
	each(t, func(w fixture) {
		ctx, annaID := w.Context(), w.Person(0)
		anna := own(annaID)
		b := w.board(anna)
		item, runID := w.result(annaID)
		upload := w.Upload(annaID, annaID, onePNG)
		all, err := w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{Create: []board.Draft{
			{Kind: board.Result, Ref: item, Text: "caption", Box: board.Box{X: 0.1, Y: -1e9, Width: 1e9, Height: math.SmallestNonzeroFloat64}},
			{Kind: board.Upload, Ref: upload}, {Kind: board.Generation, Ref: runID}, {Kind: board.Text, Text: "Mood", Box: board.Box{X: math.Copysign(0, -1)}},
		}})
		w.OK(err)
		_, nodes := w.get(anna, b.ID)
		for i, n := range nodes {
			if was := all.Created[i]; n.ID != was.ID || n.Box != was.Box || n.Text != was.Text || n.Z != was.Z || n.Missing || !n.Created.Equal(was.Created) {
				w.Errorf("node %d = %+v, was %+v", i, n, was)
			}
		}
		if i := nodes[0].Item; i == nil || i.Kind != library.KindResult || i.MimeType != "image/png" || i.Width != 8 || i.Names.Thumb == "" {
			w.Errorf("the result shows %+v", i)
		}
		if i := nodes[1].Item; i == nil || i.Kind != library.KindUpload || i.ID != upload {
			w.Errorf("the upload shows %+v", i)
		}
		if nodes[2].Status != "succeeded" || nodes[2].Item != nil || nodes[3].Item != nil || nodes[3].Status != "" {
			w.Errorf("the others show %+v", nodes[2:])
		}
		if math.Signbit(nodes[3].Box.X) {
			w.Error("a zero has a sign")
		}
		// What is deleted is missing, and the board stays.
		me := principal.Principal{PersonID: annaID, AccountID: annaID}
		w.OK(w.Library.DeleteItem(ctx, me, item))
		w.OK(w.Library.DeleteUpload(ctx, me, annaID, upload))
		_, nodes = w.get(anna, b.ID)
		if !nodes[0].Missing || nodes[0].Item != nil || !nodes[1].Missing || nodes[2].Missing || nodes[3].Missing || nodes[0].Ref != item {
			w.Errorf("after the end of what they show: %+v", nodes)
		}
		// Such a node can be moved, and can't be said anew.
		moved, err := w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: nodes[0].ID, Change: board.Change{X: ptr(7.0)}})
		w.OK(err)
		if !moved.Missing || moved.Box.X != 7 || moved.Box.Y != -1e9 {
			w.Errorf("moved = %+v", moved)
		}
		_, err = w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: nodes[0].ID, Change: board.Change{Ref: &item}})
		w.refused(err, fault.Invalid, "ref")
	})
}

func TestRefsAreOfTheAccount(t *testing.T) {
	each(t, func(w fixture) {
		annaID, bertID := w.Person(0), w.Person(0)
		anna := own(annaID)
		b := w.board(anna)
		item, runID := w.result(bertID)
		upload := w.Upload(bertID, bertID, onePNG)
		mine, myRun := w.result(annaID)
		before, _ := w.get(anna, b.ID)
		for _, d := range []board.Draft{
			{Kind: board.Result, Ref: item}, {Kind: board.Upload, Ref: upload}, {Kind: board.Generation, Ref: runID},
			{Kind: board.Result, Ref: ids.New() + ":" + uuid.NewString()}, {Kind: board.Upload, Ref: ids.New()}, {Kind: board.Generation, Ref: uuid.NewString()},
			{Kind: board.Result, Ref: mine[:20] + item[20:]}, {Kind: board.Result, Ref: item[:20] + mine[20:]}, {Kind: board.Result, Ref: myRun}, {Kind: board.Generation, Ref: mine},
			{Kind: board.Upload, Ref: "x"}, {Kind: board.Result, Ref: "\x00"}, {Kind: board.Generation, Ref: "\xff"}, {Kind: board.Generation, Ref: strings.ToUpper(myRun)},
			{Kind: board.Result}, {Kind: board.Upload}, {Kind: board.Generation}, {Kind: board.Text, Ref: mine},
		} {
			_, err := w.boards.AddNode(w.Context(), anna, b.ID, board.Match{}, d)
			w.refused(err, fault.Invalid, "ref")
		}
		if after, nodes := w.get(anna, b.ID); after != before || len(nodes) != 0 {
			w.Errorf("after all that %+v, before %+v", after, before)
		}
	})
}

func TestProblemsComeAllAtOnce(t *testing.T) {
	each(t, func(w fixture) {
		ctx, annaID := w.Context(), w.Person(0)
		anna := own(annaID)
		b := w.board(anna)
		one, two := w.add(anna, b.ID, text("one")), w.add(anna, b.ID, text("two"))
		before, _ := w.get(anna, b.ID)
		move := board.Change{X: ptr(1.0)}
		_, err := w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{
			Create: []board.Draft{text("fine"), {Kind: "PICTURE", Ref: "x"}, {Kind: board.Upload, Ref: ids.New()}, {Kind: board.Text, Text: strings.Repeat("x", 10_001), Box: board.Box{Width: -1}, Z: ptr(int64(2e9))}},
			Update: []board.Update{{one.ID, board.Change{Ref: ptr("x")}}, {ids.New(), move}, {two.ID, board.Change{}}, {two.ID, move}, {"x", move}},
			Delete: []string{one.ID, "\x00"},
		})
		w.refused(err, fault.Invalid, "create.1.kind", "create.3.text", "create.3.width", "create.3.z", "update.0.ref", "update.1.id", "update.2", "update.3.id", "update.4.id",
			"delete.0", "delete.1", "create.2.ref")
		for _, v := range nowhere {
			_, err := w.boards.AddNode(ctx, anna, b.ID, board.Match{}, board.Draft{Kind: board.Text, Box: board.Box{X: v, Y: v, Width: v, Height: v}})
			w.refused(err, fault.Invalid, "x", "y", "width", "height")
			_, err = w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: one.ID, Change: board.Change{Y: &v}})
			w.refused(err, fault.Invalid, "y")
		}
		for _, s := range []string{"a\x00b", "\xff"} {
			_, err := w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: one.ID, Change: board.Change{Text: &s}})
			w.refused(err, fault.Invalid, "text")
		}
		_, err = w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: one.ID})
		w.refused(err, fault.Invalid, "body")
		_, err = w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: ids.New(), Change: move})
		w.refused(err, fault.NotFound)
		_, err = w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{})
		w.refused(err, fault.Invalid, "body")
		_, err = w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{Create: make([]board.Draft, 1001)})
		w.refused(err, fault.Invalid, "body")
		if after, nodes := w.get(anna, b.ID); after != before || len(nodes) != 2 || nodes[0].Text != "one" {
			w.Errorf("after all that %+v with %+v", after, nodes)
		}
		if _, err := w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: one.ID, Change: board.Change{Text: ptr(strings.Repeat("ü", 10_000))}}); err != nil {
			w.Errorf("a text of 10,000 characters: %v", err)
		}
	})
}

func TestBulkIsOneStep(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna := w.Context(), own(w.Person(0))
		b := w.board(anna)
		var drafts []board.Draft
		for i := range 321 { // of every size of statement
			drafts = append(drafts, text(fmt.Sprint(i)))
		}
		made, err := w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{Create: drafts})
		w.OK(err)
		if made.Revision != 2 || len(made.Created) != 321 {
			w.Fatalf("made %d at %d", len(made.Created), made.Revision)
		}
		_, nodes := w.get(anna, b.ID)
		for i, n := range nodes {
			if n.Text != fmt.Sprint(i) || n.Z != int64(i) || n.Revision != 2 {
				w.Fatalf("node %d = %+v", i, n)
			}
		}
		c := board.Changes{Create: []board.Draft{{Kind: board.Text, Z: ptr(int64(5000))}, text("on top"), {Kind: board.Text, Z: ptr(int64(-5))}, text("above it")}}
		for i, n := range nodes {
			if i%2 == 0 {
				c.Update = append(c.Update, board.Update{ID: n.ID, Change: board.Change{X: ptr(float64(i)), Z: ptr(int64(1000 + i))}})
			} else {
				c.Delete = append(c.Delete, n.ID)
			}
		}
		w.Pass(time.Second)
		changed, err := w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, c)
		w.OK(err)
		after, nodes := w.get(anna, b.ID)
		if changed.Revision != 3 || after.Revision != 3 || after.Nodes != 165 || len(nodes) != 165 || len(changed.Deleted) != 160 {
			w.Errorf("changed to %+v with %d nodes", after, len(nodes))
		}
		for i, n := range nodes[:161] {
			if n.Box.X != float64(2*i) || n.Text != fmt.Sprint(2*i) || n.ID != changed.Updated[i].ID {
				w.Fatalf("node %d = %+v", i, n)
			}
		}
		if z := []int64{nodes[161].Z, nodes[162].Z, nodes[163].Z, nodes[164].Z}; fmt.Sprint(z) != "[5000 5001 -5 5002]" {
			w.Errorf("the new ones lie at %v", z)
		}
		// A node that was deleted does not come back.
		_, err = w.boards.SetNode(ctx, anna, b.ID, board.Match{}, board.Update{ID: changed.Deleted[0], Change: board.Change{X: ptr(1.0)}})
		w.refused(err, fault.NotFound)
		_, err = w.boards.RemoveNode(ctx, anna, b.ID, board.Match{}, changed.Deleted[0])
		w.refused(err, fault.NotFound)
		highest, err := w.boards.AddNode(ctx, anna, b.ID, board.Match{}, board.Draft{Kind: board.Text, Z: ptr(int64(1e9))})
		w.OK(err)
		if n := w.add(anna, b.ID, text("")); n.Z != highest.Z {
			w.Errorf("above the highest of all lies %d", n.Z)
		}
	})
}

func TestABoardHasSoManyNodes(t *testing.T) {
	each(t, func(w fixture) {
		ctx, anna := w.Context(), own(w.Person(0))
		b := w.board(anna)
		drafts := make([]board.Draft, 1000)
		for i := range drafts {
			drafts[i] = text("x")
		}
		var last board.ChangeResult
		for range 5 {
			var err error
			last, err = w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{Create: drafts})
			w.OK(err)
		}
		_, err := w.boards.AddNode(ctx, anna, b.ID, board.Match{}, text("one more"))
		w.refused(err, fault.Invalid, "body")
		swap, err := w.boards.ChangeNodes(ctx, anna, b.ID, board.Match{}, board.Changes{Create: drafts[:2], Delete: []string{last.Created[0].ID, last.Created[1].ID}})
		w.OK(err)
		if got, nodes := w.get(anna, b.ID); got.Nodes != 5000 || len(nodes) != 5000 || got.Revision != 7 || swap.Revision != 7 {
			w.Errorf("at last %+v with %d nodes", got, len(nodes))
		}
		// In pages it is the same.
		seen := map[string]bool{}
		var after *board.Cursor
		for {
			_, some, err := w.boards.GetBoard(ctx, anna, b.ID, after, 900)
			w.OK(err)
			for _, n := range some.Nodes {
				seen[n.ID] = true
				after = &board.Cursor{Created: n.Created, ID: n.ID}
			}
			if !some.More {
				break
			}
		}
		if len(seen) != 5000 {
			w.Errorf("the pages have %d nodes", len(seen))
		}
	})
}

// TestChangesDoNotWaitForTheCreator changes a board of a team while another
// transaction has locked the person who created it, as each of that person's
// own changes does before it waits for the board: a change that waited for the
// creator would be a deadlock.
func TestChangesDoNotWaitForTheCreator(t *testing.T) {
	each(t, func(w fixture) {
		if w.DB.Pool() == nil {
			w.Skip("SQLite has one writer at a time")
		}
		anna, bert, team := w.Person(0), w.Person(0), w.Team(0)
		b := w.board(manager(anna, team))
		w.Do(func(tx *sqldb.Tx) error {
			if _, err := tx.Exec(w.Context(), `SELECT id FROM person WHERE id = $1 FOR UPDATE`, anna); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			defer cancel()
			n, err := w.boards.AddNode(ctx, manager(bert, team), b.ID, board.Match{}, text("a"))
			w.OK(err)
			_, err = w.boards.RemoveNode(ctx, manager(bert, team), b.ID, board.Match{}, n.ID)
			w.OK(err)
			_, _, err = w.boards.RenameBoard(ctx, manager(bert, team), b.ID, board.Match{}, "Other", 1)
			w.OK(err)
			return w.boards.DeleteBoard(ctx, manager(bert, team), b.ID, board.Match{})
		})
	})
}
