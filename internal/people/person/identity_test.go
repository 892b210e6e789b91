package person_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
)

const corp, other = "https://id.example", "https://other.example" // issuers

func (w fixture) recognise(i person.Identity) {
	w.Helper()
	w.OK(w.tryRecognise(i))
}

func (w fixture) tryRecognise(i person.Identity) error {
	return w.Try(func(tx *sqldb.Tx) error { return person.StoreIdentity(w.Context(), tx, i) })
}

// at gives who a person is at a provider, which must know them.
func (w fixture) at(p person.Person, provider string) (i person.Identity) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) (err error) {
		found := false
		if i, found, err = person.IdentityAt(w.Context(), tx, p.ID, provider); err == nil && !found {
			err = errors.New("no identity at " + provider)
		}
		return err
	})
	return i
}

func (w fixture) mayAsk(i person.Identity) bool {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return person.ClaimConfirmation(w.Context(), tx, i, lease) })
}

const lease = 15 * time.Second

func TestRecognise(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		i := person.Identity{Issuer: corp, Subject: "a", PersonID: anna.ID, Provider: "corp", Refresh: "sealed", Checked: w.Now()}
		w.recognise(i)
		w.recognise(person.Identity{Issuer: corp, Subject: "b", PersonID: bert.ID, Provider: "corp"})
		w.recognise(person.Identity{Issuer: other, Subject: "a", PersonID: bert.ID, Provider: "other"})

		find := func(issuer, subject string) (p person.Person, err error) {
			err = w.Try(func(tx *sqldb.Tx) (err error) {
				p, err = person.ByIdentity(w.Context(), tx, issuer, subject)
				return err
			})
			return p, err
		}
		for _, test := range []struct {
			issuer, subject string
			want            person.Person
		}{{corp, "a", anna}, {corp, "b", bert}, {other, "a", bert}} {
			if got, err := find(test.issuer, test.subject); err != nil || got != test.want {
				w.Errorf("%s at %s = %+v, %v, want %+v", test.subject, test.issuer, got, err, test.want)
			}
		}
		for _, no := range [][2]string{{corp, "c"}, {corp, ""}, {corp, "A"}, {other, "b"}, {"", "a"}} {
			_, err := find(no[0], no[1])
			w.refused(err, fault.NotFound)
		}

		if got := w.at(anna, "corp"); got != i {
			w.Errorf("identity = %+v, want %+v", got, i)
		}
		for _, no := range []struct {
			p        person.Person
			provider string
		}{{anna, "other"}, {anna, ""}, {person.Person{ID: "x"}, "corp"}} {
			w.Do(func(tx *sqldb.Tx) error {
				if got, found, err := person.IdentityAt(w.Context(), tx, no.p.ID, no.provider); err != nil || found || got != (person.Identity{}) {
					w.Errorf("at %q = %+v, %v, %v, want none", no.provider, got, found, err)
				}
				return nil
			})
		}
	})
}

func TestRecogniseAgainBringsItUpToDate(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
		i := person.Identity{Issuer: corp, Subject: "a", PersonID: anna.ID, Provider: "corp", Refresh: "sealed"}
		w.recognise(i)
		w.recognise(person.Identity{Issuer: corp, Subject: "b", PersonID: bert.ID, Provider: "corp", Refresh: "his"})
		his := w.at(bert, "corp")
		if !w.mayAsk(w.at(anna, "corp")) {
			w.Error("nobody may ask")
		}
		w.Pass(time.Second)
		i.Provider, i.Refresh = "renamed", "sealed again"
		w.recognise(i)
		i.Checked = w.Now()
		if got := w.at(anna, "renamed"); got != i {
			w.Errorf("identity = %+v, want %+v", got, i)
		}
		if !w.mayAsk(i) {
			w.Error("whoever asked before still keeps others from it")
		}
		if got := w.at(bert, "corp"); got != his {
			w.Errorf("somebody else's = %+v, want %+v", got, his)
		}
	})
}

func TestOneSubjectIsOnePerson(t *testing.T) {
	each(t, func(w fixture) {
		anna, bert, carl := w.person("anna@example.com"), w.person("bert@example.com"), w.person("carl@example.com")
		w.recognise(person.Identity{Issuer: corp, Subject: "a", PersonID: anna.ID, Provider: "corp", Refresh: "hers"})
		w.recognise(person.Identity{Issuer: corp, Subject: "b", PersonID: bert.ID, Provider: "corp", Refresh: "his"})
		hers, his := w.at(anna, "corp"), w.at(bert, "corp")
		w.Pass(time.Hour)
		for what, i := range map[string]person.Identity{
			"a second subject for the same person":     {Subject: "c", PersonID: anna.ID},
			"a subject of another person":              {Subject: "a", PersonID: carl.ID},
			"a subject of another, beside one's own":   {Subject: "a", PersonID: bert.ID},
			"a subject of another, the other way":      {Subject: "b", PersonID: anna.ID},
			"a second subject, under another provider": {Subject: "c", PersonID: anna.ID, Provider: "renamed"},
		} {
			i.Issuer, i.Refresh = corp, "planted"
			err := w.tryRecognise(i)
			w.refused(err, fault.Forbidden)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Details["reason"] != "provider" {
				w.Errorf("%s = %v, want the reason provider", what, err)
			}
		}
		if got := w.at(anna, "corp"); got != hers {
			w.Errorf("hers = %+v, want %+v", got, hers)
		}
		if got := w.at(bert, "corp"); got != his {
			w.Errorf("his = %+v, want %+v", got, his)
		}
		if n := w.count(`SELECT count(*) FROM person_identity`); n != 2 {
			w.Errorf("%d identities, want 2", n)
		}
	})
}

func TestOneOfManyBecomesTheSubject(t *testing.T) {
	each(t, func(w fixture) {
		people := make([]person.Person, 8)
		for i := range people {
			people[i] = w.person(string(rune('a'+i)) + "@example.com")
		}
		var won atomic.Int64
		dbtest.Together(32, func(i int) {
			p := people[i%len(people)]
			switch err := w.tryRecognise(person.Identity{Issuer: corp, Subject: "a", PersonID: p.ID, Provider: "corp"}); {
			case err == nil:
				won.Add(1)
			default:
				w.refused(err, fault.Forbidden)
			}
		})
		if n := won.Load(); n != 4 {
			w.Errorf("recognised %d times, want the 4 of one person", n)
		}
	})
}

func TestProviderIsTheNewest(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.create(person.Draft{Email: "anna@example.com"})
		for _, i := range []person.Identity{{Issuer: other, Provider: "other"}, {Issuer: corp, Provider: "corp"}, {Issuer: other, Provider: "other"}} {
			i.Subject, i.PersonID = "a", anna.ID
			w.recognise(i)
			w.Pass(time.Second)
		}
		if got := w.byID(anna.ID).Provider; got != "corp" { // the other one was there before and came back
			w.Errorf("provider = %q, want corp", got)
		}
		w.Exec(`UPDATE person_identity SET provider = 'corp'`) // both issuers had the name
		if got := w.at(anna, "corp").Issuer; got != corp {
			w.Errorf("identity of %q, want the newest", got)
		}
	})
}

func TestOneOfManyMayAsk(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.byProvider("anna@example.com")
		i := w.at(anna, "corp")
		for round := range 2 {
			var won atomic.Int64
			dbtest.Together(32, func(int) {
				var mine bool
				err := w.Try(func(tx *sqldb.Tx) (err error) {
					mine, err = person.ClaimConfirmation(w.Context(), tx, i, lease)
					return err
				})
				if err != nil {
					w.Error(err)
				}
				if mine {
					won.Add(1)
				}
			})
			if n := won.Load(); n != 1 {
				w.Errorf("round %d: %d may ask, want 1", round, n)
			}
			w.Pass(lease) // the one that won died
		}
	})
}

func TestLeaseRunsOut(t *testing.T) {
	each(t, func(w fixture) {
		i := w.at(w.byProvider("anna@example.com"), "corp")
		for _, step := range []struct {
			after time.Duration
			want  bool
		}{{0, true}, {0, false}, {lease - time.Microsecond, false}, {time.Microsecond, true}, {lease - time.Microsecond, false}} {
			w.Pass(step.after)
			if got := w.mayAsk(i); got != step.want {
				w.Errorf("after %v more: may ask = %v, want %v", step.after, got, step.want)
			}
		}
		i.Subject = "nobody"
		if w.mayAsk(i) {
			w.Error("may ask about nobody")
		}
	})
}

func TestAnswersOfTheProvider(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		record  func(context.Context, *sqldb.Tx, person.Identity) error
		refresh string
		checked bool
	}{
		"it stands by the person": {func(ctx context.Context, tx *sqldb.Tx, i person.Identity) error {
			return person.RecordConfirmation(ctx, tx, i, "next")
		}, "next", true},
		"it no longer does": {func(ctx context.Context, tx *sqldb.Tx, i person.Identity) error {
			_, err := person.ForgetIdentity(ctx, tx, i)
			return err
		}, "", true},
		"it gave none": {person.ReleaseConfirmation, "sealed", false},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(w fixture) {
				anna, bert := w.person("anna@example.com"), w.person("bert@example.com")
				all := []person.Identity{
					{Issuer: corp, Subject: "a", PersonID: anna.ID, Provider: "corp", Refresh: "sealed"},
					{Issuer: corp, Subject: "b", PersonID: bert.ID, Provider: "corp", Refresh: "his"}, // the issuer is the same
					{Issuer: other, Subject: "a", PersonID: bert.ID, Provider: "other", Refresh: "his"},
				}
				for n := range all {
					w.recognise(all[n])
					all[n].Checked = w.Now()
					if !w.mayAsk(all[n]) {
						w.Error("nobody may ask")
					}
				}
				w.Pass(time.Second)
				w.Do(func(tx *sqldb.Tx) error { return test.record(w.Context(), tx, all[0]) })

				want := all[0]
				want.Refresh = test.refresh
				if test.checked {
					want.Checked = w.Now()
					if w.mayAsk(all[0]) {
						w.Error("who knows only the old answer may ask")
					}
				}
				if got := w.at(anna, "corp"); got != want {
					w.Errorf("identity = %+v, want %+v", got, want)
				}
				if !w.mayAsk(want) || w.mayAsk(want) {
					w.Error("the next to ask is not one")
				}
				for _, i := range all[1:] {
					if got := w.at(bert, i.Provider); got != i {
						w.Errorf("somebody else's = %+v, want %+v", got, i)
					}
					if w.mayAsk(i) {
						w.Error("somebody else's lease ended")
					}
				}
			})
		})
	}
}

// TestAnOldAnswerChangesNothing: the provider speaks of a token that a new
// sign-in has replaced.
func TestAnOldAnswerChangesNothing(t *testing.T) {
	each(t, func(w fixture) {
		anna := w.person("anna@example.com")
		before := person.Identity{Issuer: corp, Subject: "a", PersonID: anna.ID, Provider: "corp", Refresh: "before"}
		after := before
		after.Refresh = "after"
		w.Do(func(tx *sqldb.Tx) error { return person.StoreIdentity(w.Context(), tx, before) })
		w.Do(func(tx *sqldb.Tx) error { return person.StoreIdentity(w.Context(), tx, after) })
		w.Do(func(tx *sqldb.Tx) error {
			lost, err := person.ForgetIdentity(w.Context(), tx, before)
			if lost {
				w.Error("the new sign-in was forgotten")
			}
			return err
		})
		w.Do(func(tx *sqldb.Tx) error { return person.RecordConfirmation(w.Context(), tx, before, "next") })
		if got := w.at(anna, "corp"); got.Refresh != "after" {
			w.Errorf("refresh = %q, want the newest", got.Refresh)
		}
	})
}
