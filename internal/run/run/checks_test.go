package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/run/run"
)

// TestChecksFindDamage breaks each rule once.
func TestChecksFindDamage(t *testing.T) {
	eachFixture(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		running := w.bring(anna, run.Running)
		succeeded := w.bring(anna, run.Succeeded)
		lost := w.bring(anna, run.Running)
		w.requeue(lost, run.Lost)
		w.Do(func(tx *sqldb.Tx) error {
			return run.StoreKey(w.Context(), tx, anna, "k", run.Key{RunID: running.ID})
		})
		found := map[string]bool{}
		for _, c := range []struct {
			check, damage string
			args          []any
		}{
			{"the number of queued runs in a scheduling row is correct", `UPDATE run_turn SET waiting = waiting + 1`, nil},
			{"every queued run has a scheduling row", `DELETE FROM run_turn`, nil},
			{"every running run, and no other, has a lease", `UPDATE run SET lease_until = NULL WHERE id = $1`, []any{running.ID}},
			{"every running run, and no other, has a lease", `UPDATE run SET lease_until = 1 WHERE id = $1`, []any{lost.ID}},
			{"only the newest attempt of a running run is open", `DELETE FROM run_attempt WHERE run_id = $1`, []any{running.ID}},
			{"only the newest attempt of a running run is open", `UPDATE run_attempt SET ended = NULL, outcome = NULL WHERE run_id = $1`, []any{lost.ID}},
			{"all older attempts of a run have ended", `UPDATE run SET attempt = 2 WHERE id = $1`, []any{running.ID}},
			{"all older attempts of a run have ended", `UPDATE run SET attempt = 0 WHERE id = $1`, []any{lost.ID}},
			{"all older attempts of a run have ended", `UPDATE run_attempt SET ended = NULL, outcome = NULL WHERE run_id = $1`, []any{succeeded.ID}},
			{"the last attempt of a run has the final state of the run", `UPDATE run_attempt SET outcome = 'failed' WHERE run_id = $1`, []any{succeeded.ID}},
			{"the last attempt of a run has the final state of the run", `UPDATE run_attempt SET outcome = 'failed' WHERE run_id = $1`, []any{lost.ID}},
			{"a successful run has a successful attempt", `UPDATE run_attempt SET outcome = 'lost' WHERE run_id = $1`, []any{succeeded.ID}},
			{"a run's times are in order", `UPDATE run SET created = started + 1 WHERE id = $1`, []any{running.ID}},
			{"a run's times are in order", `UPDATE run SET created = finished + 1 WHERE id = $1`, []any{succeeded.ID}},
			{"an idempotency key and its run belong to the same person", `UPDATE run SET person_id = $2, account_id = $2 WHERE id = $1`, []any{running.ID, bert}},
			{"the number of results of a run is correct", `UPDATE run SET results = 1 WHERE id = $1`, []any{running.ID}},
			{"the account of a run is its team, or the person if there is no team", `UPDATE run SET account_id = 'other' WHERE id = $1`, []any{running.ID}},
		} {
			if got := w.Damage(run.Checks, c.damage, c.args...); !got[c.check] {
				w.Errorf("%s %v: found by %v, want %q", c.damage, c.args, got, c.check)
			}
			found[c.check] = true
		}
		for _, c := range run.Checks {
			if !found[c.Name] {
				w.Errorf("nothing broke %q", c.Name)
			}
		}
	})
}

// TestLimitChecks plants too many runs at the edges of the windows.
func TestLimitChecks(t *testing.T) {
	eachFixture(t, func(w fixture) {
		checks := run.LimitChecks(w.DB.Dialect, run.Limits{PerMinute: 3, PerHour: 5, Active: 4})
		now := w.DB.Dialect.Clock
		const second = int64(1_000_000)
		// ended is a run from so long ago, which took so long.
		anna := w.person()
		ended := func(ago, took int64) string {
			id := w.add(anna)
			return fmt.Sprintf(`UPDATE run SET created = %s - %d, status = 'failed', stage = NULL, error_code = 'X', tokens_charged = 0, allowance_used = 0,
				finished = %s - %d WHERE id = '%s'`, now, ago, now, ago-took, id)
		}
		violated := func(setup ...string) map[string]bool {
			w.Helper()
			found := map[string]bool{}
			for _, s := range setup {
				w.Exec(s)
			}
			v, err := w.DB.VerifyChecks(w.Context(), checks)
			w.OK(err)
			for _, one := range v {
				found[one.Check] = true
				if !strings.HasPrefix(one.Row, "person "+anna) && !strings.HasPrefix(one.Row, "run ") {
					w.Errorf("%s names %q", one.Check, one.Row)
				}
			}
			return found
		}
		const minute, hour, going, taken, ends = "no person starts more runs in a minute than allowed", "no person starts more runs in an hour than allowed",
			"no person has more active runs than allowed", "no running run has an expired lease", "every run ends within two days"
		is := func(what string, got map[string]bool, want ...string) {
			w.Helper()
			ok := len(got) == len(want)
			for _, name := range want {
				ok = ok && got[name]
			}
			if !ok {
				w.Errorf("%s: found %v, want %q", what, got, want)
			}
			w.Exec(`UPDATE run_turn SET waiting = 0`)
			w.Exec(`DELETE FROM run_attempt`)
			w.Exec(`DELETE FROM run`)
		}
		// All of a statement's times follow from one moment on PostgreSQL
		// only, so the edges are a second wide here.
		is("three in a minute", violated(ended(1000*second, 1), ended(1020*second, 1), ended(1040*second, 1)))
		is("four in a minute", violated(ended(1000*second, 1), ended(1020*second, 1), ended(1040*second, 1), ended(1058*second, 1)), minute)
		is("four in just more", violated(ended(1000*second, 1), ended(1020*second, 1), ended(1040*second, 1), ended(1062*second, 1)))
		is("six in an hour", violated(ended(100*second, 1), ended(800*second, 1), ended(1500*second, 1), ended(2200*second, 1), ended(3000*second, 1), ended(3698*second, 1)), hour)
		is("six in just more", violated(ended(100*second, 1), ended(800*second, 1), ended(1500*second, 1), ended(2200*second, 1), ended(3000*second, 1), ended(3702*second, 1)))
		is("five at once", violated(ended(100*second, 1), ended(800*second, 800*second), ended(1500*second, 1480*second), ended(2200*second, 2180*second), ended(3000*second, 2950*second)), going)
		is("four at once", violated(ended(100*second, 1), ended(800*second, 690*second), ended(1500*second, 1480*second), ended(2200*second, 2180*second), ended(3000*second, 2950*second)))
		old := w.add(anna)
		is("two days", violated(fmt.Sprintf(`UPDATE run SET created = %s - %d WHERE id = '%s'`, now, int64(48*time.Hour/time.Microsecond)+second, old)), ends)
		young := w.add(anna)
		is("not quite", violated(fmt.Sprintf(`UPDATE run SET created = %s - %d WHERE id = '%s'`, now, int64(48*time.Hour/time.Microsecond)-60*second, young)))
		for _, c := range []struct {
			ago  int64
			want []string
		}{{30 * second, nil}, {62 * second, []string{taken}}} {
			w.add(anna)
			r := w.claim("worker")
			is("a lease", violated(fmt.Sprintf(`UPDATE run SET created = %s, lease_until = %s - %d WHERE id = '%s'`, now, now, c.ago, r.ID)), c.want...)
		}
	})
}
