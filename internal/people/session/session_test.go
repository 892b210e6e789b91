package session_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// fixture is a database with a clock. What a test leaves in it must pass the
// checks.
type fixture struct{ dbtest.Fixture }

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, session.Checks, func(w dbtest.Fixture) { fn(fixture{w}) })
}

// person gives the id of somebody new.
func (w fixture) person(email string) string {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (string, error) {
		p, err := person.Create(w.Context(), tx, person.Draft{Email: email, PasswordHash: "x"})
		return p.ID, err
	})
}

const lifetime = 24 * time.Hour

func (w fixture) start(s session.Session) (started session.Session, cookie string) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) (err error) {
		started, cookie, err = session.Start(w.Context(), tx, s, lifetime)
		return err
	})
	return started, cookie
}

func (w fixture) live(id string) bool {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return session.IsLive(w.Context(), tx, id) })
}

func (w fixture) list(personID string) []session.Session {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]session.Session, error) { return session.List(w.Context(), tx, personID) })
}

func (w fixture) end(personID, id string) bool {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return session.End(w.Context(), tx, personID, id) })
}

// found wants the cookie to stand for s.
func (w fixture) found(cookie string, s session.Session) {
	w.Helper()
	if got, err := session.Find(w.Context(), w.DB, cookie, w.Now()); err != nil || got != s {
		w.Errorf("find = %+v, %v, want %+v", got, err, s)
	}
}

// none wants the cookie to stand for nothing.
func (w fixture) none(cookie string) {
	w.Helper()
	if got, err := session.Find(w.Context(), w.DB, cookie, w.Now()); !errors.Is(err, session.ErrSignedOut) || got != (session.Session{}) {
		w.Errorf("find = %+v, %v, want %v", got, err, session.ErrSignedOut)
	}
}

func TestStart(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		draft := session.Session{ID: "planted", PersonID: anna, Provider: "corp", Agent: "Firefox", Address: "192.0.2.1",
			Created: w.Now().Add(time.Hour), LastUsed: w.Now().Add(time.Hour)}
		s, cookie := w.start(draft)
		want := session.Session{ID: s.ID, PersonID: anna, Provider: "corp", Agent: "Firefox", Address: "192.0.2.1", Created: w.Now(), LastUsed: w.Now()}
		if s != want || !ids.Valid(s.ID) {
			w.Errorf("started %+v, want %+v with an id", s, want)
		}
		if len(cookie) != 44 || !ids.Alphanumeric(cookie) {
			w.Errorf("cookie %q has the wrong form", cookie)
		}
		again, second := w.start(draft)
		if again.ID == s.ID || second == cookie {
			w.Error("two sessions share an id or a cookie")
		}
		w.found(cookie, s)
		w.found(second, again)
	})
}

func TestCookieIsNotKept(t *testing.T) {
	each(t, func(w fixture) {
		s, cookie := w.start(session.Session{PersonID: w.person("anna@example.com")})
		var hash, rest string
		err := w.DB.QueryRow(w.Context(), `SELECT hash, id || person_id || provider || agent || address FROM web_session WHERE id = $1`, s.ID).Scan(&hash, &rest)
		if err != nil {
			w.Fatal(err)
		}
		if sum := sha256.Sum256([]byte(cookie)); hash != hex.EncodeToString(sum[:]) || strings.Contains(rest, cookie) {
			w.Errorf("the row has %q and %q, want the SHA-256 of %q only", hash, rest, cookie)
		}
		w.none(hash[:44]) // what the table has opens nothing
	})
}

// Nobody asks the database, which is none, about what cannot be a cookie.
func TestMalformedCookies(t *testing.T) {
	t.Parallel()
	good := ids.Text(44)
	for _, bad := range []string{
		"", good[1:], good + "0", " " + good[1:], good[1:] + "-", good[1:] + "\x00", good[1:] + "\xff", good[2:] + "é", good[1:] + "'",
		strings.Repeat("a", 64), strings.Repeat("a", 1<<20),
	} {
		if got, err := session.Find(t.Context(), nil, bad, time.Now()); !errors.Is(err, session.ErrSignedOut) || got != (session.Session{}) {
			t.Errorf("find %.50q = %+v, %v, want %v", bad, got, err, session.ErrSignedOut)
		}
	}
	if f, ok := errors.AsType[*fault.Error](session.ErrSignedOut); !ok || f.Code != fault.Unauthenticated {
		t.Errorf("ErrNone = %v, want %s", session.ErrSignedOut, fault.Unauthenticated)
	}
}

func TestUnknownCookies(t *testing.T) {
	each(t, func(w fixture) {
		s, cookie := w.start(session.Session{PersonID: w.person("anna@example.com")})
		for _, bad := range []string{ids.Text(44), cookie[1:] + cookie[:1], strings.ToUpper(cookie), strings.ToLower(cookie)} {
			w.none(bad)
		}
		w.found(cookie, s)
	})
}

func TestSessionRunsOut(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		old, oldCookie := w.start(session.Session{PersonID: anna})
		w.Pass(time.Hour)
		fresh, freshCookie := w.start(session.Session{PersonID: anna})
		sweep := func(want int64) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error { return session.DeleteExpired(w.Context(), tx) })
			var n int64
			if err := w.DB.QueryRow(w.Context(), `SELECT count(*) FROM web_session`).Scan(&n); err != nil || n != want {
				w.Errorf("%d sessions are left, %v, want %d", n, err, want)
			}
		}
		w.Do(func(tx *sqldb.Tx) error { return session.Touch(w.Context(), tx, old.ID, "") }) // which does not make it last
		old.LastUsed = w.Now()

		w.Pass(lifetime - time.Hour - time.Microsecond)
		w.found(oldCookie, old)
		if !w.live(old.ID) || !slices.Equal(w.list(anna), []session.Session{fresh, old}) {
			w.Error("gone before its time")
		}
		sweep(2)

		w.Pass(time.Microsecond)
		w.none(oldCookie)
		if w.live(old.ID) || !slices.Equal(w.list(anna), []session.Session{fresh}) {
			w.Error("there after its time")
		}
		w.found(freshCookie, fresh)
		sweep(1)
		w.found(freshCookie, fresh)
	})
}

func TestSuspendedPersonHasNoSession(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		s, cookie := w.start(session.Session{PersonID: anna})
		his, hisCookie := w.start(session.Session{PersonID: bert})
		suspend := func(yes bool) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error { return person.SetSuspended(w.Context(), tx, anna, yes) })
		}
		suspend(true)
		w.none(cookie)
		w.found(hisCookie, his)
		suspend(false)
		w.found(cookie, s)
	})
}

func TestTouch(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		s, cookie := w.start(session.Session{PersonID: anna, Address: "192.0.2.1"})
		other, otherCookie := w.start(session.Session{PersonID: anna, Address: "192.0.2.1"})
		w.Pass(time.Minute)
		w.Do(func(tx *sqldb.Tx) error { return session.Touch(w.Context(), tx, s.ID, "2001:db8::1") })
		s.LastUsed, s.Address = w.Now(), "2001:db8::1"
		w.found(cookie, s)
		w.found(otherCookie, other)
		w.Do(func(tx *sqldb.Tx) error { return session.Touch(w.Context(), tx, ids.New(), "") }) // ended meanwhile
	})
}

func TestListIsNewestFirst(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		var want []session.Session
		for i := range 12 {
			s, _ := w.start(session.Session{PersonID: anna, Provider: "password", Agent: "Firefox", Address: "192.0.2.1"})
			want = append(want, s)
			w.Pass(time.Duration(i%6/5) * time.Minute) // by sixes in one moment
		}
		w.start(session.Session{PersonID: bert})
		slices.SortFunc(want, func(a, b session.Session) int {
			if c := b.Created.Compare(a.Created); c != 0 {
				return c
			}
			return strings.Compare(b.ID, a.ID)
		})
		if got := w.list(anna); !slices.Equal(got, want) {
			w.Errorf("list = %+v, want %+v", got, want)
		}
		if got := w.list(ids.New()); len(got) != 0 {
			w.Errorf("list of nobody = %+v", got)
		}
	})
}

func TestEnd(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		one, oneCookie := w.start(session.Session{PersonID: anna})
		two, twoCookie := w.start(session.Session{PersonID: anna})
		for what, personID := range map[string]string{"another person": bert, "nobody": ""} {
			if w.end(personID, one.ID) || !w.live(one.ID) {
				w.Errorf("%s ended it", what)
			}
		}
		for _, id := range []string{"", ids.New(), "\x00", oneCookie} {
			if w.end(anna, id) {
				w.Errorf("%q was ended", id)
			}
		}
		if !w.end(anna, one.ID) || w.live(one.ID) {
			w.Error("it was not ended")
		}
		w.none(oneCookie)
		if w.end(anna, one.ID) {
			w.Error("it was ended twice")
		}
		w.found(twoCookie, two)
		if !w.live(two.ID) {
			w.Error("the other one is dead")
		}
	})
}

func TestEndAll(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		cookies := make([]string, 3)
		for i := range cookies {
			_, cookies[i] = w.start(session.Session{PersonID: anna})
		}
		his, hisCookie := w.start(session.Session{PersonID: bert})
		for _, want := range []int64{3, 0} {
			if n := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (int64, error) { return session.EndAll(w.Context(), tx, anna) }); n != want {
				w.Errorf("ended %d, want %d", n, want)
			}
		}
		for _, cookie := range cookies {
			w.none(cookie)
		}
		w.found(hisCookie, his)
	})
}

func TestOneOfManyEnds(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		s, _ := w.start(session.Session{PersonID: anna})
		start, ended := make(chan struct{}), make(chan bool)
		for range 32 {
			go func() {
				<-start
				var mine bool
				err := w.DB.Write(w.Context(), func(tx *sqldb.Tx) (err error) { mine, err = session.End(w.Context(), tx, anna, s.ID); return err })
				if err != nil {
					w.Error(err)
				}
				ended <- mine
			}()
		}
		close(start)
		n := 0
		for range 32 {
			if <-ended {
				n++
			}
		}
		if n != 1 {
			w.Errorf("%d ended it, want 1", n)
		}
	})
}

func TestAgentIsMadeFitToShow(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		for _, test := range []struct{ what, agent, want string }{
			{"as it is", "Mozilla/5.0 (X11; Linux) Föx 🦊", "Mozilla/5.0 (X11; Linux) Föx 🦊"},
			{"nothing", "", ""},
			{"line breaks", "a\r\nb\tc", "a��b�c"},
			{"a zero byte", "a\x00b", "a�b"},
			{"a delete", "a\x7fb", "a�b"},
			{"a control character beyond ASCII", "a\u0085b", "a�b"},
			{"bytes, not text", "a\xff\xfeb", "a��b"},
			{"just short enough", strings.Repeat("x", 256), strings.Repeat("x", 256)},
			{"too long", strings.Repeat("x", 257), strings.Repeat("x", 256)},
			{"too long, at a border", strings.Repeat("é", 200), strings.Repeat("é", 128)},
			{"too long, within a character", "x" + strings.Repeat("é", 200), "x" + strings.Repeat("é", 127)},
			{"too long, within a longer one", "x" + strings.Repeat("🦊", 100), "x" + strings.Repeat("🦊", 63)},
		} {
			s, cookie := w.start(session.Session{PersonID: anna, Agent: test.agent})
			if s.Agent != test.want {
				w.Errorf("%s: agent = %q, want %q", test.what, s.Agent, test.want)
			}
			w.found(cookie, s)
		}
	})
}

func TestChecksFind(t *testing.T) {
	each(t, func(w fixture) {
		w.start(session.Session{PersonID: w.person("anna@example.com")})
		undo := errors.New("undo")
		err := w.DB.Write(w.Context(), func(tx *sqldb.Tx) error {
			if _, err := tx.Exec(w.Context(), `UPDATE web_session SET hash = 'cookie'`); err != nil {
				return err
			}
			var line string
			if err := tx.QueryRow(w.Context(), session.Checks[0].Query).Scan(&line); err != nil {
				return err // nothing was found
			}
			return undo
		})
		if !errors.Is(err, undo) {
			w.Errorf("a cookie in the clear: %v", err)
		}
	})
}
