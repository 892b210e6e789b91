package library_test

import (
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/library"
	"atelier/internal/people/principal"
)

// wholeList returns all items of a list.
func (w fixture) wholeList(v principal.Principal, f library.Filter) []library.Item {
	w.Helper()
	all, err := w.lib.ListItems(w.Context(), v, f, nil, 1000)
	w.OK(err)
	return all
}

// Every mark leads to the item with its index, in one account and in several,
// in both orders and with filters.
func TestMarks(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		team, tool := w.team(anna), w.tool()
		b := picture(3, 3)
		for i := range 9 {
			if i%2 == 0 { // some share a moment
				w.Pass(time.Second)
			}
			w.make(made{account: []string{anna, anna, team}[i%3], person: anna, tool: tool, prompt: []string{"a fox", "a hound"}[i%2], files: [][]byte{b, b}})
		}
		own, both := viewerOf(anna), teamViewer(anna, anna, team)
		favorite := w.wholeList(own, library.Filter{})[3].ID
		w.OK(w.lib.SetFavorite(w.Context(), own, favorite, true))
		yes := true
		for _, v := range []principal.Principal{own, both} {
			for _, f := range []library.Filter{{}, {OldestFirst: true}, {Search: "fox"}, {Search: "fox", OldestFirst: true}, {Favorited: &yes}, {Type: "IMG"}, {Type: "VID"}, {ToolIDs: []string{}}, {Search: "zeppelin"}} {
				all := w.wholeList(v, f)
				for _, every := range []int64{2, 3, 4, 100} {
					total, marks, err := w.lib.ListMarks(w.Context(), v, f, every)
					w.OK(err)
					if want := (len(all) + int(every) - 1) / int(every); total != int64(len(all)) || len(marks) != want {
						w.Errorf("%+v every %d: total %d and %d marks, want %d and %d", f, every, total, len(marks), len(all), want)
						continue
					}
					for i, m := range marks {
						page, err := w.lib.ListItems(w.Context(), v, f, m.After, 1)
						w.OK(err)
						if at := i * int(every); m.Index != int64(at) || (m.After == nil) != (i == 0) || len(page) != 1 || page[0] != all[at] || !m.Created.Equal(all[at].Created) {
							w.Errorf("%+v every %d: mark %+v leads to %+v, want %+v", f, every, m, page, all[at])
						}
					}
				}
			}
		}
		if total, marks, err := w.lib.ListMarks(w.Context(), teamViewer(anna), library.Filter{}, 2); err != nil || total != 0 || len(marks) != 0 {
			w.Errorf("without an account: %d, %v, %v", total, marks, err)
		}
		if _, _, err := w.lib.ListMarks(w.Context(), own, library.Filter{AspectRatio: "x"}, 2); err == nil {
			w.Error("an invalid filter was accepted")
		}
	})
}

// A long list has at most 10,000 marks, which are further apart then.
func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	db := dbtest.OpenAt(t, dbtest.URL(t, dbtest.Engines[0]), time.Now)
	person := ids.New()
	fillLibrary(t, db, person, 20_005)
	lib := &library.Library{DB: db}
	total, marks, err := lib.ListMarks(t.Context(), viewerOf(person), library.Filter{}, 2)
	if err != nil || total != 20_005 || len(marks) != 5002 || marks[5001].Index != 20_004 {
		t.Fatalf("total %d, %d marks, %v; want 5002 marks, 4 items apart", total, len(marks), err)
	}
	page, err := lib.ListItems(t.Context(), viewerOf(person), library.Filter{}, marks[5001].After, 10)
	if err != nil || len(page) != 1 {
		t.Errorf("after the last mark there are %d items, %v, want 1", len(page), err)
	}
}
