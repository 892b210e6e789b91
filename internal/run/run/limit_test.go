package run_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/run"
)

// tryLimited claims the next run, if there is one and fewer than limit runs are
// running.
func (w fixture) tryLimited(worker string, limit int) (r run.Run, ok bool, err error) {
	err = w.Try(func(tx *sqldb.Tx) (err error) {
		r, _, ok, err = run.Claim(w.Context(), tx, run.ClaimOptions{Engine: engine, Worker: worker, Lease: lease, Limit: limit})
		return err
	})
	return r, ok, err
}

// running returns the number of running runs.
func (w fixture) running() (n int64, err error) {
	err = w.DB.QueryRow(w.Context(), `SELECT count(*) FROM run WHERE stage = 'running'`).Scan(&n)
	return n, err
}

// TestLimitOfAllWorkers has many workers claim and end runs of an engine at
// once. Each counts the running runs while it has one.
func TestLimitOfAllWorkers(t *testing.T) {
	eachFixture(t, func(w fixture) {
		const people, each, workers, limit = 6, 8, 16, 3
		for range people {
			anna := w.person()
			for range each {
				w.add(anna)
			}
		}
		var ended, most atomic.Int64
		dbtest.Together(workers, func(i int) {
			for ended.Load() < people*each {
				r, ok, err := w.tryLimited(fmt.Sprint("worker", i), limit)
				if err != nil {
					w.Errorf("claim: %v", err)
					return
				}
				if !ok {
					continue
				}
				n, err := w.running()
				if err != nil {
					w.Errorf("count: %v", err)
					return
				}
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); {
					old = most.Load()
				}
				err = w.Try(func(tx *sqldb.Tx) error {
					_, _, err := run.End(w.Context(), tx, r, outcome(run.Succeeded))
					return err
				})
				if err != nil {
					w.Errorf("end: %v", err)
					return
				}
				ended.Add(1)
			}
		})
		if n := most.Load(); n > limit || n < 1 {
			w.Errorf("%d runs were running at once, want at most %d", n, limit)
		}
	})
}

// TestPlacesComeBack fills an engine, and gives its places back in every way in
// which a run can leave its worker.
func TestPlacesComeBack(t *testing.T) {
	eachFixture(t, func(w fixture) {
		const limit = 2
		for range 8 {
			w.add(w.person())
		}
		claim := func(what string) run.Run {
			w.Helper()
			r, ok, err := w.tryLimited("worker", limit)
			if err != nil || !ok {
				w.Fatalf("%s: claimed = %v, %v, want a run", what, ok, err)
			}
			return r
		}
		full := func(what string) {
			w.Helper()
			if _, ok, err := w.tryLimited("other", limit); err != nil || ok {
				w.Errorf("%s: claimed = %v, %v, want no place", what, ok, err)
			}
		}
		first, second := claim("first"), claim("second")
		full("both places are taken")
		if _, ok, err := w.tryLimited("other", limit+1); err != nil || !ok {
			w.Errorf("a worker with a higher limit: claimed = %v, %v", ok, err)
		}
		full("three are taken")

		w.end(first, outcome(run.Succeeded))
		full("one above the lower limit has ended")
		w.requeue(second, run.Returned)
		third := claim("after a return")
		full("both are taken again")
		w.end(third, outcome(run.Failed))
		claim("after a failure")

		// The worker died: its places come back when its runs are queued again.
		w.Pass(lease + time.Second)
		full("the leases have just expired")
		w.Do(func(tx *sqldb.Tx) error {
			lost, err := run.LockExpired(w.Context(), tx, 10)
			if err != nil {
				return err
			}
			return run.RequeueLost(w.Context(), tx, lost)
		})
		claim("after a loss")
		claim("after another loss")
		full("both are taken by the next worker")
	})
}

// TestUnstaffed has runs wait for engines that the settings name and nobody
// serves.
func TestUnstaffed(t *testing.T) {
	eachFixture(t, func(w fixture) {
		d := w.draft(w.person())
		d.Engine = "unknown"
		w.insert(d)
		w.add(w.person())
		declare := func(pools map[string]string) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) error { return run.DeclareEngines(w.Context(), tx, pools) })
		}
		look := func(since time.Time) (unserved []string, unstaffed map[string]string) {
			w.Helper()
			w.Do(func(tx *sqldb.Tx) (err error) {
				if unserved, err = run.UnservedEngines(w.Context(), tx, since); err != nil {
					return err
				}
				unstaffed, err = run.ListUnstaffed(w.Context(), tx, w.Now().Add(-time.Minute))
				return err
			})
			return unserved, unstaffed
		}
		declare(map[string]string{engine: "gpu", "idle": "gpu"})
		if unserved, unstaffed := look(time.Time{}); fmt.Sprint(unserved, unstaffed) != "[unknown] map[script:gpu]" {
			w.Errorf("unserved = %v, unstaffed = %v", unserved, unstaffed)
		}
		declare(map[string]string{engine: "big-gpu"})
		all := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]run.Declaration, error) { return run.DeclaredEngines(w.Context(), tx) })
		if len(all) != 2 || all[0] != (run.Declaration{Engine: "idle", Pool: "gpu", Seen: w.Now()}) || all[1] != (run.Declaration{Engine: engine, Pool: "big-gpu", Seen: w.Now()}) {
			w.Errorf("declared = %+v", all)
		}

		w.Do(func(tx *sqldb.Tx) error { return run.ReportServed(w.Context(), tx, []string{engine}) })
		if _, unstaffed := look(time.Time{}); len(unstaffed) > 0 {
			w.Errorf("unstaffed = %v, want none while a worker serves it", unstaffed)
		}
		w.Pass(2 * time.Minute)
		unserved, unstaffed := look(w.Now().Add(-time.Minute))
		if fmt.Sprint(unserved, unstaffed) != "[script unknown] map[script:big-gpu]" {
			w.Errorf("later: unserved = %v, unstaffed = %v", unserved, unstaffed)
		}
	})
}
