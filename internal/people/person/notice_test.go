package person_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
)

func TestNoticesComeNewestFirst(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		notify := func(p person.Person, kind, text string) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error { return person.Notify(w.Context(), tx, p.ID, kind, text) })
		}
		read := func(p person.Person, limit int) (texts []string) {
			w.Helper()
			for _, n := range dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]person.Notice, error) { return person.Notices(w.Context(), tx, p.ID, limit) }) {
				texts = append(texts, n.Text)
			}
			return texts
		}
		for _, text := range []string{"first", "second", "third"} {
			notify(anna, "device", text)
			w.Pass(time.Minute)
		}
		for limit, want := range map[int][]string{0: nil, 1: {"third"}, 2: {"third", "second"}, 9: {"third", "second", "first"}} {
			if got := read(anna, limit); !slices.Equal(got, want) {
				w.Errorf("newest %d = %v, want %v", limit, got, want)
			}
		}
		if got := read(bert, 9); got != nil {
			w.Errorf("somebody else was told %v", got)
		}
		notify(bert, "password", "Ümläut & <b>")
		got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]person.Notice, error) { return person.Notices(w.Context(), tx, bert.ID, 9) })
		if len(got) != 1 || !ids.Valid(got[0].ID) {
			w.Fatalf("notices = %+v, want one with an id", got)
		}
		if want := (person.Notice{ID: got[0].ID, Kind: "password", Text: "Ümläut & <b>", Created: w.Now()}); got[0] != want {
			w.Errorf("notice = %+v, want %+v", got[0], want)
		}
	})
}

func TestNoticesOfOneMomentKeepTheirOrder(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		for range 8 {
			w.Do(func(tx *sqldb.Tx) error { return person.Notify(w.Context(), tx, anna.ID, "device", "x") })
		}
		got := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]person.Notice, error) { return person.Notices(w.Context(), tx, anna.ID, 9) })
		if len(got) != 8 || !slices.IsSortedFunc(got, func(a, b person.Notice) int { return strings.Compare(b.ID, a.ID) }) {
			w.Errorf("notices = %+v, want 8 by id from above", got)
		}
	})
}
