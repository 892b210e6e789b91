package ratelimit_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/testkit/watch"
)

func sweep(t *testing.T, db *sqldb.DB, before time.Time, limit int) (removed int64) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) (err error) {
		removed, err = ratelimit.Sweep(t.Context(), tx, before, limit)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return removed
}

func TestSweep(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		window := ratelimit.Window{Max: 100, Span: time.Hour}
		for i := range 5 {
			take(t, db, fmt.Sprint("old/", i), window)
			take(t, db, "both", window)
		}
		c.stepTo(2 * time.Hour)
		last, _ := take(t, db, "both", window)
		old := c.now().Add(-time.Hour)
		if sweep(t, db, old, 4); count(t, db, "rate_log") != 11-4 {
			t.Errorf("%d rows are left, want 7: at most 4 go at once", count(t, db, "rate_log"))
		}
		if v, err := db.VerifyChecks(t.Context(), ratelimit.Checks); err != nil || len(v) != 0 {
			t.Errorf("checks after part of a sweep = %v, %v", v, err)
		}
		for sweep(t, db, old, 4) >= 4 {
		}
		if rows, keys := count(t, db, "rate_log"), count(t, db, "rate_key"); rows != 1 || keys != 1 {
			t.Errorf("%d rows and %d keys are left, want the newest", rows, keys)
		}
		if n := sweep(t, db, c.now(), 4); n != 0 {
			t.Errorf("removed %d, want what is as old as the limit to stay", n)
		}
		if n := sweep(t, db, c.now().Add(time.Microsecond), 4); n != 2 {
			t.Errorf("removed %d, want the newest and its key", n)
		}
		if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return ratelimit.ReturnEvent(t.Context(), tx, last) }); err != nil {
			t.Errorf("return what was swept: %v", err)
		}
	})
}

// TestSweepLeavesAKeyInUse lets the sweep wait for somebody who holds an old
// key and uses it.
func TestSweepLeavesAKeyInUse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		ctx := t.Context()
		once := ratelimit.Window{Max: 1, Span: time.Minute}
		take(t, db, "a", once)
		c.stepTo(time.Hour)
		before := c.now().Add(-2 * time.Minute)
		var sweeping sync.WaitGroup
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			if _, _, err := ratelimit.Take(ctx, tx, ratelimit.Key{Name: "a"}, once); err != nil {
				return err
			}
			sweeping.Go(func() {
				err := db.Write(ctx, func(tx *sqldb.Tx) error { _, err := ratelimit.Sweep(ctx, tx, before, 10); return err })
				if err != nil {
					t.Errorf("sweep = %v", err)
				}
			})
			if db.Dialect.Name == "postgres" { // on SQLite it waits for its turn
				watch.Until(t, "the sweep to wait for the key", func() (waits bool) {
					err := db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
						WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
					return err == nil && waits
				})
			}
			return nil
		})
		sweeping.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if rows, keys := count(t, db, "rate_log"), count(t, db, "rate_key"); rows != 1 || keys != 1 {
			t.Errorf("%d rows and %d keys are left, want the ones in use", rows, keys)
		}
	})
}

// TestSweepAmongMany holds that sweeping makes room for nobody.
func TestSweepAmongMany(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		ctx := t.Context()
		window := ratelimit.Window{Max: 5, Span: time.Minute}
		for range 5 {
			take(t, db, "a", window)
		}
		c.stepTo(time.Hour)
		before := c.now().Add(-time.Minute)
		var admitted atomic.Int64
		var group sync.WaitGroup
		for i := range 64 {
			group.Go(func() {
				var id string
				err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
					if id = ""; i%4 == 0 {
						_, err = ratelimit.Sweep(ctx, tx, before, 2)
						return err
					}
					id, _, err = ratelimit.Take(ctx, tx, ratelimit.Key{Name: "a"}, window)
					return err
				})
				if err != nil {
					t.Errorf("at once = %v", err)
				}
				if id != "" {
					admitted.Add(1)
				}
			})
		}
		group.Wait()
		if n := admitted.Load(); n != 5 {
			t.Errorf("%d admitted, want 5", n)
		}
	})
}
