package run_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/run"
)

// TestTurns has people wait for one engine.
func TestTurns(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		var annas []string
		for range 10 {
			annas = append(annas, w.add(anna))
			w.Pass(time.Millisecond)
		}
		next := func(what, want string) {
			w.Helper()
			w.Pass(time.Millisecond)
			if r := w.claim("worker"); r.ID != want {
				w.Errorf("%s: claimed a run of %s", what, map[string]string{anna: "anna", bert: "bert"}[r.PersonID])
			}
		}
		next("her first", annas[0])
		first := w.add(bert)
		next("who comes new goes before one just served", first)
		second := w.add(bert)
		next("she was served before him", annas[1])
		next("then he", second)
		next("who waits alone is served", annas[2])
		third := w.add(bert)
		next("his turn again", third)
		if n := w.turn(anna); n != 7 {
			w.Errorf("%d of anna's wait, want 7", n)
		}
		for i := 3; i < 10; i++ {
			next("oldest first", annas[i])
		}
		if _, ok := w.try("worker"); ok {
			w.Error("claimed a run that is not there")
		}
	})
}

func TestOtherEnginesRunsAreLeft(t *testing.T) {
	eachFixture(t, func(w fixture) {
		d := w.draft(w.person())
		d.Engine = "other"
		w.insert(d)
		if _, ok := w.try("worker"); ok {
			w.Error("claimed a run for another engine")
		}
	})
}

// TestClaimingAtOnce has many workers take from one list.
func TestClaimingAtOnce(t *testing.T) {
	eachFixture(t, func(w fixture) {
		const people, each = 4, 8
		for range people {
			anna := w.person()
			for range each {
				w.add(anna)
			}
		}
		var mu sync.Mutex
		taken := map[string]int{}
		dbtest.Together(64, func(i int) {
			// Who finds all rows locked looks again, as a runner does.
			for {
				var r run.Run
				var ok bool
				err := w.Try(func(tx *sqldb.Tx) (err error) {
					r, _, ok, err = run.Claim(w.Context(), tx, run.ClaimOptions{Engine: engine, Worker: fmt.Sprint("worker", i), Lease: lease})
					return err
				})
				if err != nil {
					w.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				if ok {
					taken[r.ID]++
				}
				all := len(taken) == people*each
				mu.Unlock()
				if all {
					return
				}
			}
		})
		for id, n := range taken {
			if n != 1 {
				w.Errorf("run %s was claimed %d times", id, n)
			}
		}
	})
}

// TestALateWorkerChangesNothing lets a run go from one worker to another.
func TestALateWorkerChangesNothing(t *testing.T) {
	eachFixture(t, func(w fixture) {
		id := w.add(w.person())
		late := w.claim("late")
		if !w.requeue(late, run.Lost) {
			w.Fatal("a lost run is not requeued")
		}
		idle := w.get(id)
		check := func(when string) {
			w.Helper()
			was := w.get(id)
			if w.report(late, 1, "x") || w.requeue(late, run.Returned) || w.end(late, outcome(run.Succeeded)) || w.end(late, outcome(run.Failed)) {
				w.Errorf("%s: the late worker changed the run", when)
			}
			if now := w.get(id); now.Revision != was.Revision || now.State != was.State {
				w.Errorf("%s: run = %+v, was %+v", when, now, was)
			}
		}
		check("while it waits")
		w.claim("new")
		check("while another has it")
		if w.end(idle, outcome(run.Cancelled)) {
			w.Error("who saw it wait ended it while it ran")
		}
		now := w.get(id)
		if now.Attempt != 2 {
			w.Errorf("attempt = %d, want 2", now.Attempt)
		}
		w.end(now, outcome(run.Succeeded))
		check("once it is over")
		if n := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (int64, error) { return run.CountLosses(w.Context(), tx, id) }); n != 1 {
			w.Errorf("lost %d times, want 1", n)
		}
	})
}

func TestLeases(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna := w.person()
		var ids []string
		for range 3 {
			w.add(anna)
			ids = append(ids, w.claim("mine").ID)
		}
		w.add(anna)
		other := w.claim("other").ID
		expired := func() (ids []string) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error {
				lost, err := run.LockExpired(w.Context(), tx, 100)
				for _, r := range lost {
					ids = append(ids, r.ID)
				}
				return err
			})
			slices.Sort(ids)
			return ids
		}
		renew := func(ids ...string) (got []string) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error {
				held, err := run.RenewLeases(w.Context(), tx, "mine", ids, lease)
				for _, h := range held {
					got = append(got, h.ID)
				}
				return err
			})
			slices.Sort(got)
			return got
		}
		slices.Sort(ids)
		w.Pass(lease)
		if got := expired(); got != nil {
			w.Errorf("expired = %v at the very end, want none", got)
		}
		if got := renew(ids[0], ids[1], other); !slices.Equal(got, ids[:2]) {
			w.Errorf("renewed %v, want %v", got, ids[:2])
		}
		if got := renew(); got != nil {
			w.Errorf("renewed %v, want none", got)
		}
		w.Pass(time.Microsecond)
		want := []string{ids[2], other} // nobody works on that one, though it is held
		slices.Sort(want)
		if got := expired(); !slices.Equal(got, want) {
			w.Errorf("expired = %v, want %v", got, want)
		}
		w.Exec(`UPDATE run SET cancel = TRUE WHERE id = $1`, ids[1])
		held := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]run.Lease, error) { return run.ListLeases(w.Context(), tx, "mine") })
		if len(held) != 3 {
			w.Errorf("held = %+v, want 3", held)
		}
		for _, h := range held {
			if h.Attempt != 1 || h.Cancel != (h.ID == ids[1]) {
				w.Errorf("held = %+v", h)
			}
		}
		w.Do(func(tx *sqldb.Tx) error {
			lost, err := run.LockExpired(w.Context(), tx, 1)
			if len(lost) != 1 {
				w.Errorf("%d expired, want as many as asked for", len(lost))
			}
			return err
		})
	})
}

func TestTurnsAreCounted(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna := w.person()
		is := func(what string, want int64) {
			w.Helper()
			if n := w.turn(anna); n != want {
				w.Errorf("%s: %d wait, want %d", what, n, want)
			}
			if v, err := w.DB.VerifyChecks(w.Context(), run.Checks); err != nil || len(v) != 0 {
				w.Errorf("%s: %v, %v", what, v, err)
			}
		}
		w.add(anna)
		second := w.add(anna)
		is("added", 2)
		r := w.claim("worker")
		is("claimed", 1)
		w.requeue(r, run.Returned)
		is("handed back", 2)
		w.end(w.get(second), outcome(run.Cancelled))
		is("cancelled", 1)
		r = w.claim("worker")
		w.end(r, outcome(run.Failed))
		is("failed while it ran", 0)
	})
}

func TestWaitingSince(t *testing.T) {
	eachFixture(t, func(w fixture) {
		old, anna := w.add(w.person()), w.person()
		w.claim("worker")
		w.Pass(time.Second)
		id := w.add(anna)
		since := func(at time.Time) (ids []string) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error {
				all, err := run.ListWaitingSince(w.Context(), tx, at, 10)
				for _, r := range all {
					ids = append(ids, r.ID)
				}
				return err
			})
			return ids
		}
		if got := since(w.Now()); got != nil {
			w.Errorf("waiting since before they came: %v", got)
		}
		if got := since(w.Now().Add(time.Microsecond)); !slices.Equal(got, []string{id}) {
			w.Errorf("waiting = %v, want %s", got, id)
		}
		w.Pass(time.Hour)
		w.requeue(w.get(old), run.Lost)
		if got := since(w.Now()); !slices.Equal(got, []string{id}) {
			w.Errorf("waiting = %v: who ran until now has not waited", got)
		}
	})
}
