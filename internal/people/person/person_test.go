package person_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
)

// fixture is a database with a clock. What a test leaves in it must pass the
// checks.
type fixture struct{ dbtest.Fixture }

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, person.Checks, func(w dbtest.Fixture) { fn(fixture{w}) })
}

func (w fixture) count(query string, args ...any) (n int64) {
	w.Helper()
	w.OK(w.DB.QueryRow(w.Context(), query, args...).Scan(&n))
	return n
}

// person makes somebody whose password nobody knows.
func (w fixture) person(email string) person.Person {
	w.Helper()
	return w.create(person.Draft{Email: email, PasswordHash: "x"})
}

func (w fixture) create(d person.Draft) person.Person {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (person.Person, error) { return person.Create(w.Context(), tx, d) })
}

func (w fixture) byID(id string) person.Person {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (person.Person, error) { return person.ByID(w.Context(), tx, id) })
}

// refused wants a fault with this code and a message for a person.
func (w fixture) refused(err error, code fault.Code) {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code || !strings.HasSuffix(f.Message, ".") {
		w.Errorf("error = %v, want %s with a sentence", err, code)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		create := func(email string) (p person.Person, err error) {
			err = db.Write(ctx, func(tx *sqldb.Tx) (err error) {
				p, err = person.Create(ctx, tx, person.Draft{Email: email, EmailVerified: true, PasswordHash: "x"})
				return err
			})
			return p, err
		}
		made, err := create("Anna@Example.com")
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"anna@example.com", "ANNA@EXAMPLE.COM", "", "anna", "anna@", "Anna <a@b.c>", " a@b.c", "a\u2028b@c.d", strings.Repeat("a", 251) + "@b.c"} {
			_, err := create(bad)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Path != "email" {
				t.Errorf("create %q = %v, want %s on email", bad, err, fault.Invalid)
			}
		}
		err = db.Read(ctx, func(tx *sqldb.Tx) error {
			got, err := person.ByEmail(ctx, tx, "aNNa@example.COM")
			if err == nil && got != made {
				t.Errorf("by mail = %+v, want %+v", got, made)
			}
			_, missing := person.ByEmail(ctx, tx, "bert@example.com")
			if f, ok := errors.AsType[*fault.Error](missing); !ok || f.Code != fault.NotFound {
				t.Errorf("a stranger = %v, want %s", missing, fault.NotFound)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if v, err := db.VerifyChecks(ctx, person.Checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
}

func TestSetup(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		offer := func() (token string) {
			t.Helper()
			if err := db.Write(ctx, func(tx *sqldb.Tx) (err error) { token, err = person.CreateSetupToken(ctx, tx); return err }); err != nil {
				t.Fatal(err)
			}
			return token
		}
		may := func(token string) (ok bool) {
			t.Helper()
			if err := db.Read(ctx, func(tx *sqldb.Tx) (err error) { ok, err = person.IsSetupToken(ctx, tx, token); return err }); err != nil {
				t.Fatal(err)
			}
			return ok
		}
		first, second := offer(), offer() // two nodes start
		if first == second || !may(first) || !may(second) {
			t.Error("offered tokens are equal or do not work")
		}
		for _, bad := range []string{"", "x", first + "x", strings.ToLower(first), strings.Repeat("%", 40)} {
			if may(bad) {
				t.Errorf("token %q works", bad)
			}
		}
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			_, err := person.Create(ctx, tx, person.Draft{Email: "a@b.c", PasswordHash: "x"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if may(first) || may(second) || offer() != "" {
			t.Error("setting up is still possible after the first person")
		}
		if v, err := db.VerifyChecks(ctx, person.Checks); err != nil || len(v) != 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
	})
}

// TestOneSetsUp: of many who come with what was offered, one is first.
func TestOneSetsUp(t *testing.T) {
	each(t, func(w fixture) {
		var offers []string
		for range 2 { // nodes
			w.Do(func(tx *sqldb.Tx) error {
				token, err := person.CreateSetupToken(w.Context(), tx)
				offers = append(offers, token)
				return err
			})
		}
		undo := errors.New("undo")
		err := w.Try(func(tx *sqldb.Tx) error {
			if ok, err := person.UseSetupToken(w.Context(), tx, offers[0]+"x"); ok || err != nil {
				w.Errorf("a token that was not offered = %v, %v", ok, err)
			}
			return undo
		})
		if !errors.Is(err, undo) {
			w.Error(err)
		}
		var first atomic.Int64
		dbtest.Together(16, func(i int) {
			var ok bool
			err := w.Try(func(tx *sqldb.Tx) (err error) {
				ok, err = person.UseSetupToken(w.Context(), tx, offers[i%2])
				return err
			})
			if err != nil {
				w.Error(err)
			}
			if ok {
				first.Add(1)
			}
		})
		if first.Load() != 1 {
			w.Errorf("%d were first", first.Load())
		}
	})
}

func TestByID(t *testing.T) {
	each(t, func(w fixture) {
		anna, _ := w.person("anna@example.com"), w.person("bert@example.com")
		if got := w.byID(anna.ID); got != anna {
			w.Errorf("by id = %+v, want %+v", got, anna)
		}
		for _, id := range []string{ids.New(), "", anna.Email} {
			w.refused(w.Try(func(tx *sqldb.Tx) error { _, err := person.ByID(w.Context(), tx, id); return err }), fault.NotFound)
			w.refused(w.Try(func(tx *sqldb.Tx) error { return person.Lock(w.Context(), tx, id) }), fault.NotFound)
		}
	})
}

// Whoever has the lock reads what the one before wrote.
func TestLockTakesTurns(t *testing.T) {
	each(t, func(w fixture) {
		const n = 32
		anna := w.person("anna@example.com")
		dbtest.Together(n, func(int) {
			err := w.Try(func(tx *sqldb.Tx) error {
				if err := person.Lock(w.Context(), tx, anna.ID); err != nil {
					return err
				}
				before, err := person.Notices(w.Context(), tx, anna.ID, n)
				if err != nil {
					return err
				}
				return person.Notify(w.Context(), tx, anna.ID, "turn", strconv.Itoa(len(before)))
			})
			if err != nil {
				w.Error(err)
			}
		})
		if got := w.count(`SELECT count(DISTINCT text) FROM person_notice`); got != n {
			w.Errorf("%d different turns, want %d", got, n)
		}
	})
}

func TestSetVerified(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("Anna@example.com"), w.person("bert@example.com")
		verify := func(id, email string) bool {
			w.Helper()
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return person.SetVerified(w.Context(), tx, id, email) })
		}
		for _, test := range []struct{ what, id, email string }{
			{"another's address", anna.ID, bert.Email},
			{"no address", anna.ID, ""},
			{"nobody", ids.New(), anna.Email},
		} {
			if verify(test.id, test.email) || w.byID(anna.ID).EmailVerified {
				w.Errorf("%s was verified", test.what)
			}
		}
		if !verify(anna.ID, "aNNa@EXAMPLE.com") || !w.byID(anna.ID).EmailVerified {
			w.Error("her own address was not verified")
		}
		if verify(anna.ID, anna.Email) {
			w.Error("the same is news again")
		}
		if w.byID(bert.ID).EmailVerified {
			w.Error("somebody else's address was verified too")
		}
		w.Exec(`UPDATE person SET email = 'bert@example.org', email_key = 'bert@example.org' WHERE id = $1`, bert.ID)
		if verify(bert.ID, bert.Email) || w.byID(bert.ID).EmailVerified {
			w.Error("an address was verified that is no longer his")
		}
	})
}

func TestVerifyingIsNewsOnce(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		var news atomic.Int64
		dbtest.Together(32, func(int) {
			var fresh bool
			err := w.Try(func(tx *sqldb.Tx) (err error) {
				fresh, err = person.SetVerified(w.Context(), tx, anna.ID, anna.Email)
				return err
			})
			if err != nil {
				w.Error(err)
			}
			if fresh {
				news.Add(1)
			}
		})
		if n := news.Load(); n != 1 {
			w.Errorf("news %d times, want once", n)
		}
	})
}

func TestSetEmail(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		set := func(email string) error {
			return w.Try(func(tx *sqldb.Tx) error { return person.SetEmail(w.Context(), tx, anna.ID, email) })
		}
		if err := set("BERT@example.com"); !errors.Is(err, person.ErrEmailTaken) {
			w.Errorf("somebody else's address: %v", err)
		}
		if err := set("nonsense"); !fault.Is(err, fault.Invalid) {
			w.Errorf("nonsense: %v", err)
		}
		w.OK(set("Anna@example.com"))
		w.OK(set("ax@example.com"))
		if got := w.byID(anna.ID).Email; got != "ax@example.com" || w.byID(bert.ID).Email != "bert@example.com" {
			w.Errorf("address = %s", got)
		}
		w.person("anna@example.com") // free again
	})
}

func TestSuspend(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		for _, suspended := range []bool{true, true, false} {
			w.Do(func(tx *sqldb.Tx) error { return person.SetSuspended(w.Context(), tx, anna.ID, suspended) })
			if got := w.byID(anna.ID).Suspended; got != suspended {
				w.Errorf("suspended = %v, want %v", got, suspended)
			}
			if w.byID(bert.ID).Suspended {
				w.Error("somebody else is suspended")
			}
		}
	})
}

func TestSignedInRemembersTheOneBefore(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		never := time.Unix(0, 0).UTC()
		want := []time.Time{never}
		for i := range 4 {
			if got := w.byID(anna.ID).SignedInBefore; !got.Equal(want[i]) {
				w.Errorf("before, after %d sign-ins = %v, want %v", i, got, want[i])
			}
			if i == 0 {
				want = append(want, never) // nothing was before the first
			} else {
				want = append(want, w.Now().Add(-time.Hour))
			}
			w.Do(func(tx *sqldb.Tx) error { return person.RecordSignIn(w.Context(), tx, anna.ID) })
			w.Pass(time.Hour)
		}
		if got := w.byID(bert.ID).SignedInBefore; !got.Equal(never) {
			w.Errorf("somebody else's = %v, want %v", got, never)
		}
	})
}

var errUndo = errors.New("undo")

// Each damage is found by the check that is there for it.
func TestChecksFind(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		w.offer(person.ResetLink, person.Link{PersonID: anna.ID}, time.Hour)
		for damage, check := range map[string]string{
			`UPDATE person SET email_key = email_key || 'X'`:               "e-mail addresses are indexed in lower case",
			`INSERT INTO deployment (name, value) VALUES ('setup/x', '')`:  "there is no set-up link once a person exists",
			`UPDATE person_link SET hash = 'secret'`:                       "links are stored only as SHA-256",
			`UPDATE person SET password_hash = '', email_verified = FALSE`: "every person has a way to sign in",
		} {
			found := w.Damage(person.Checks, damage)
			if len(found) != 1 || !found[check] {
				w.Errorf("after %s the checks found %v, want %q", damage, found, check)
			}
		}
	})
}

// TestListByAddress reads everybody in pages, whatever the case of an address.
func TestListByAddress(t *testing.T) {
	each(t, func(w fixture) {
		for _, email := range []string{"cora@example.com", "Anna@example.com", "bert@example.com", "dora@example.com"} {
			w.person(email)
		}
		gone := w.person("aaron@example.com")
		w.Do(func(tx *sqldb.Tx) error { return person.Erase(w.Context(), tx, gone.ID) })
		var emails []string
		for after := ""; ; {
			var page []person.Person
			w.Do(func(tx *sqldb.Tx) (err error) {
				page, err = person.List(w.Context(), tx, "", after, 3)
				return err
			})
			for _, p := range page {
				emails = append(emails, p.Email)
			}
			if len(page) < 3 {
				break
			}
			after = page[2].Email
		}
		want := []string{"Anna@example.com", "bert@example.com", "cora@example.com", "dora@example.com"}
		if !slices.Equal(emails, want) {
			w.Errorf("people = %q, want %q", emails, want)
		}
	})
}
