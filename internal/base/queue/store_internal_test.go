package queue

import (
	"errors"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// moves lists where each step of the store takes a job from each state. What
// is not listed leaves the job as it was.
var moves = map[string]map[string]string{
	"take":         {waiting: running},
	"renew":        {},
	"succeed":      {running: done},
	"fail":         {running: failed},
	"retry":        {running: waiting},
	"hand back":    {running: waiting},
	"reclaim":      {running: waiting},
	"reclaim last": {running: failed},
}

func TestStoreMoves(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	now := time.Now()
	db := dbtest.OpenAt(t, dbtest.URL(t, "sqlite"), func() time.Time { return now })
	after := func(w Work, o outcome) func(*sqldb.Tx) error {
		return func(tx *sqldb.Tx) error { return settleJob(ctx, tx, w, o) }
	}
	expire := func(attempts int) func(*sqldb.Tx) error {
		return func(tx *sqldb.Tx) error {
			tx.Now = tx.Now.Add(time.Hour)
			_, err := reclaimJobs(ctx, tx, "note", attempts)
			return err
		}
	}
	for _, from := range []string{waiting, running, done, failed} {
		for step, to := range moves {
			t.Run(step+" "+from, func(t *testing.T) {
				var w Work
				write(t, db, func(tx *sqldb.Tx) (err error) {
					w.ID, err = insertJob(ctx, tx, Job{Kind: "note"})
					return err
				})
				w.Attempt = 1
				if from != waiting {
					write(t, db, func(tx *sqldb.Tx) error {
						_, err := claimJobs(ctx, tx, "note", 1, now.Add(time.Minute))
						return err
					})
				}
				if from != waiting && from != running {
					write(t, db, after(w, outcome{state: from}))
				}
				retry := after(w, outcome{state: waiting, err: errors.New("again")})
				for _, fn := range map[string][]func(*sqldb.Tx) error{
					"take": {func(tx *sqldb.Tx) error {
						_, err := claimJobs(ctx, tx, "note", 10, now.Add(time.Minute))
						return err
					}},
					"renew": {func(tx *sqldb.Tx) error {
						_, err := renewLease(ctx, tx, w, now.Add(time.Hour))
						return err
					}},
					"succeed":      {after(w, outcome{state: done})},
					"fail":         {after(w, outcome{state: failed, err: errors.New("no")})},
					"retry":        {retry},
					"hand back":    {after(w, outcome{state: waiting, free: true})},
					"reclaim":      {expire(2)},
					"reclaim last": {expire(1)},
				}[step] {
					write(t, db, fn)
				}
				want, ok := to[from]
				if !ok {
					want = from
				}
				var got string
				if err := db.QueryRow(ctx, `SELECT state FROM job WHERE id = $1`, w.ID).Scan(&got); err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("state = %s, want %s", got, want)
				}
				wantSound(t, db)
				// Out of the way of the next.
				write(t, db, func(tx *sqldb.Tx) error {
					_, err := tx.Exec(ctx, `DELETE FROM job`)
					return err
				})
			})
		}
	}
}

func TestChecksFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		wantSound(t, db)
		broken := []string{
			`INSERT INTO job (id, kind, args, state, attempt, run_at, lease_until, cancel, error, created)
				VALUES ('a', 'note', '', 'running', 1, 0, 0, FALSE, '', 0)`,
			`INSERT INTO job (id, kind, args, state, attempt, run_at, lease_until, cancel, error, created)
				VALUES ('b', 'note', '', 'waiting', 1, 0, 9e15, FALSE, '', 0)`,
			`INSERT INTO job (id, kind, args, state, attempt, run_at, lease_until, cancel, error, created)
				VALUES ('c', 'note', '', 'running', 0, 0, 9e15, FALSE, '', 0)`,
			`INSERT INTO job (id, kind, args, state, attempt, run_at, cancel, error, created)
				VALUES ('d', 'note', '', 'done', 1, 0, FALSE, '', 0)`,
		}
		if db.Pool() != nil {
			broken = []string{`INSERT INTO river_job (args, kind, max_attempts, state, attempt, attempted_at)
				VALUES ('{}', 'note', 1, 'running', 1, now() - interval '2 hours')`}
		}
		for _, query := range broken {
			write(t, db, func(tx *sqldb.Tx) error {
				_, err := tx.Exec(t.Context(), query)
				return err
			})
		}
		found, err := db.VerifyChecks(t.Context(), Checks(db.Dialect))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, v := range found {
			seen[v.Check]++
		}
		for _, c := range Checks(db.Dialect) {
			if seen[c.Name] != 1 {
				t.Errorf("%q found %d rows, want 1", c.Name, seen[c.Name])
			}
		}
	})
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	now := time.Now()
	db := dbtest.OpenAt(t, dbtest.URL(t, "sqlite"), func() time.Time { return now })
	for _, step := range []struct {
		name  string
		pass  time.Duration
		every time.Duration
		want  int // jobs to be had
	}{
		{"the first is due at once", 0, time.Hour, 1},
		{"the next is not", 59 * time.Minute, time.Hour, 0},
		{"after the time it is", time.Minute, time.Hour, 1},
		{"a transaction that began earlier brings nothing forward", -time.Minute, time.Hour, 0},
		{"so the next is a whole time later", time.Hour, time.Hour, 0},
		{"and then it is due", time.Minute, time.Hour, 1},
		{"missed ones are not made up for", 5 * time.Hour, time.Hour, 1},
		{"a shorter time is not due at once", time.Minute, 10 * time.Minute, 0},
		{"but when it has passed", 10 * time.Minute, 10 * time.Minute, 1},
	} {
		now = now.Add(step.pass)
		write(t, db, func(tx *sqldb.Tx) error {
			if err := addPeriodic(ctx, tx, "sweep", step.every); err != nil {
				return err
			}
			if err := addPeriodic(ctx, tx, "sweep", step.every); err != nil { // another process
				return err
			}
			works, err := claimJobs(ctx, tx, "sweep", 10, now)
			if len(works) != step.want {
				t.Errorf("%s: %d jobs, want %d", step.name, len(works), step.want)
			}
			for _, w := range works {
				if err := settleJob(ctx, tx, w, outcome{state: done}); err != nil {
					return err
				}
			}
			return err
		})
	}
}

func write(t *testing.T, db *sqldb.DB, fn func(*sqldb.Tx) error) {
	t.Helper()
	if err := db.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func wantSound(t *testing.T, db *sqldb.DB) {
	t.Helper()
	found, err := db.VerifyChecks(t.Context(), Checks(db.Dialect))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Errorf("%s: %s", v.Check, v.Row)
	}
}
