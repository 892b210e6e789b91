package dbtest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
)

// Fixture is a test with a database whose clock moves only when the test moves
// it. Packages embed the fixture in a type with their own helpers.
type Fixture struct {
	*testing.T
	DB    *sqldb.DB
	URL   string        // URL of the database
	clock *atomic.Int64 // current time in microseconds since 1970
}

// EachFixture runs fn as a subtest for every kind of database, in parallel with
// other tests. Afterwards it fails the test if rows that fn left behind violate
// the checks.
func EachFixture(t *testing.T, checks []sqldb.Check, fn func(w Fixture)) {
	t.Helper()
	t.Parallel()
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := Fixture{T: t, URL: URL(t, engine), clock: new(atomic.Int64)}
			w.clock.Store(time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC).UnixMicro())
			w.DB = OpenAt(t, w.URL, w.Now)
			fn(w)
			if v, err := w.DB.VerifyChecks(t.Context(), checks); err != nil || len(v) != 0 {
				t.Errorf("checks = %v, %v", v, err)
			}
		})
	}
}

// Now returns the current time of the fixture's clock.
func (w Fixture) Now() time.Time { return time.UnixMicro(w.clock.Load()).UTC() }

// Pass moves the clock forward by d.
func (w Fixture) Pass(d time.Duration) { w.clock.Add(d.Microseconds()) }

// Try runs fn in its own transaction and returns the error.
func (w Fixture) Try(fn func(*sqldb.Tx) error) error { return w.DB.Write(w.Context(), fn) }

// Do runs fn in its own transaction and fails the test if the transaction
// returns an error.
func (w Fixture) Do(fn func(*sqldb.Tx) error) { w.Helper(); w.OK(w.Try(fn)) }

// OK ends the test as failed if err is not nil.
func (w Fixture) OK(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Exec runs a statement directly, without the package under test.
func (w Fixture) Exec(query string, args ...any) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) error { _, err := tx.Exec(w.Context(), query, args...); return err })
}

// Get runs fn in its own transaction and returns the result. It fails the test
// if fn returns an error.
func Get[T any](w Fixture, fn func(*sqldb.Tx) (T, error)) (v T) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) (err error) { v, err = fn(tx); return err })
	return v
}

// Damage runs a statement that damages data, runs the checks, and rolls back.
// It returns the names of the checks that found the damage.
func (w Fixture) Damage(checks []sqldb.Check, damage string, args ...any) (found map[string]bool) {
	w.Helper()
	found = map[string]bool{}
	undo := errors.New("undo")
	err := w.Try(func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(w.Context(), damage, args...); err != nil {
			return err
		}
		for _, c := range checks {
			err := tx.EachRow(w.Context(), c.Query, nil, func(row sqldb.Scanner) error {
				var line string
				found[c.Name] = true
				return row.Scan(&line)
			})
			if err != nil {
				return err
			}
		}
		return undo
	})
	if !errors.Is(err, undo) {
		w.Errorf("%s: %v", damage, err)
	}
	return found
}

// Together calls fn n times concurrently, with i from 0 to n-1, and waits until
// all calls have returned.
func Together(n int, fn func(i int)) {
	var group sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-gate
			fn(i)
		})
	}
	close(gate)
	group.Wait()
}

// Explain returns the lines of the plan of a query. options are those of EXPLAIN
// on PostgreSQL, such as "(ANALYZE)", which executes the query; SQLite has none.
func (w Fixture) Explain(options, query string, args []any) (lines []string) {
	w.Helper()
	isPostgres := w.DB.Dialect.Name == "postgres"
	explain := "EXPLAIN QUERY PLAN "
	if isPostgres {
		explain = "EXPLAIN " + options + " "
	}
	w.Do(func(tx *sqldb.Tx) error {
		lines = nil
		return tx.EachRow(w.Context(), explain+query, args, func(row sqldb.Scanner) error {
			var id, parent, unused int64
			var line string
			columns := []any{&id, &parent, &unused, &line}
			if isPostgres {
				columns = columns[3:]
			}
			err := row.Scan(columns...)
			lines = append(lines, line)
			return err
		})
	})
	return lines
}
