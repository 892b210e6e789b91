package session_test

import (
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/session"
)

func (w fixture) remember(personID, cookie string) string {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) {
		return session.RememberBrowser(w.Context(), tx, personID, cookie, lifetime)
	})
}

func (w fixture) known(personID, cookie string) bool {
	w.Helper()
	id := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) { return session.KnownBrowserID(w.Context(), tx, personID, cookie) })
	return id != ""
}

func TestKnownBrowsers(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		first := w.remember(anna, "")
		if len(first) != 44 || !w.known(anna, first) || w.known(bert, first) || w.known("", first) {
			w.Errorf("%q is not known to anna alone", first)
		}
		w.none(first) // it signs nobody in

		both := w.remember(bert, first)
		if len(both) != 2*44+1 || !w.known(anna, both) || !w.known(bert, both) || !w.known(anna, first) {
			w.Errorf("%q is not known to both", both)
		}
		again := w.remember(anna, both)
		if w.known(anna, both) || !w.known(anna, again) || !w.known(bert, again) || len(again) != len(both) {
			w.Errorf("%q after %q: the secret of before still counts, or another's does not", again, both)
		}
		for _, odd := range []string{"", ".", strings.Repeat("-", 44), again[1:], strings.Repeat(again+".", 1000) + again, "\x00"} {
			if known := w.known(anna, odd); known != strings.HasPrefix(odd, again) {
				w.Errorf("%.50q is known: %v", odd, known)
			}
		}

		w.Do(func(tx *sqldb.Tx) error {
			_, err := session.EndAll(w.Context(), tx, anna)
			return err
		})
		if w.known(anna, again) || !w.known(bert, again) {
			w.Error("signing out everywhere leaves a browser known, or is about others as well")
		}
		w.Pass(lifetime)
		if w.known(bert, again) {
			w.Error("it does not end")
		}
		w.Do(func(tx *sqldb.Tx) error { return session.DeleteExpired(w.Context(), tx) })
		if n := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (n int, err error) {
			err = tx.QueryRow(w.Context(), `SELECT count(*) FROM known_browser`).Scan(&n)
			return n, err
		}); n != 0 {
			w.Errorf("%d are left after the sweep", n)
		}
	})
}

func TestKnownBrowsersAreFew(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		first := w.remember(anna, "")
		var cookies []string
		for range 50 {
			w.Pass(time.Second)
			cookies = append(cookies, w.remember(anna, ""))
		}
		if w.known(anna, first) || !w.known(anna, cookies[0]) || !w.known(anna, cookies[49]) {
			w.Error("not the oldest one went")
		}
		shared := ""
		for i := range 8 { // more people than a cookie has room for
			shared = w.remember(w.person(strings.Repeat("x", 1+i)+"@example.com"), shared)
		}
		if n := len(strings.Split(shared, ".")); n != 5 {
			w.Errorf("%d secrets in a cookie, want 5", n)
		}
	})
}
