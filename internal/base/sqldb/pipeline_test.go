package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

const (
	insertName = `INSERT INTO deployment (name, value) VALUES ($1, $2)`
	countNames = `SELECT count(*) FROM deployment WHERE name LIKE 'd%'`
)

// TestDeferredStatements are executed in their order, before the next statement
// and before the commit, on both databases.
func TestDeferredStatements(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		add := func(tx *sqldb.Tx, name string) error {
			return tx.DeferExec(ctx, insertName, []any{name, ""}, func(changed int64) error {
				if changed != 1 {
					return fmt.Errorf("%s changed %d rows", name, changed)
				}
				return nil
			})
		}
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			var seen []string
			if err := add(tx, "d1"); err != nil {
				return err
			}
			err := tx.DeferQueryRow(ctx, countNames, nil, func(row sqldb.Row) error {
				var n int64
				err := row.Scan(&n)
				seen = append(seen, fmt.Sprint("deferred ", n))
				return err
			})
			if err != nil {
				return err
			}
			if err := add(tx, "d2"); err != nil {
				return err
			}
			var n int64
			if err := tx.QueryRow(ctx, countNames).Scan(&n); err != nil {
				return err
			}
			seen = append(seen, fmt.Sprint("row ", n))

			if err := add(tx, "d3"); err != nil {
				return err
			}
			changed, err := tx.Exec(ctx, `UPDATE deployment SET value = 'x' WHERE name LIKE 'd%'`)
			if err != nil {
				return err
			}
			seen = append(seen, fmt.Sprint("changed ", changed))

			if err := add(tx, "d4"); err != nil {
				return err
			}
			names, err := sqldb.All(ctx, tx, `SELECT name FROM deployment WHERE name LIKE 'd%' ORDER BY name`, nil, sqldb.Column[string])
			if err != nil {
				return err
			}
			seen = append(seen, strings.Join(names, " "))
			if want := []string{"deferred 1", "row 2", "changed 3", "d1 d2 d3 d4"}; !slices.Equal(seen, want) {
				t.Errorf("saw %q, want %q", seen, want)
			}
			return add(tx, "d5") // sent before the commit
		})
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		if err := db.QueryRow(ctx, countNames).Scan(&n); err != nil || n != 5 {
			t.Errorf("%d rows, %v, want 5", n, err)
		}
	})
}

// TestDeferredFailures undo the whole transaction, whichever statement they are
// sent with.
func TestDeferredFailures(t *testing.T) {
	t.Parallel()
	errCheck := errors.New("a check failed")
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		failures := map[string]func(tx *sqldb.Tx) error{
			"a duplicate": func(tx *sqldb.Tx) error {
				return errors.Join(tx.DeferExec(ctx, insertName, []any{"d1", ""}, nil), tx.DeferExec(ctx, insertName, []any{"d1", ""}, nil))
			},
			"a check": func(tx *sqldb.Tx) error {
				return tx.DeferExec(ctx, insertName, []any{"d2", ""}, func(int64) error { return errCheck })
			},
			"a read": func(tx *sqldb.Tx) error {
				if err := tx.DeferExec(ctx, insertName, []any{"d3", ""}, nil); err != nil {
					return err
				}
				return tx.DeferQueryRow(ctx, `SELECT value FROM deployment WHERE name = 'none'`, nil, func(row sqldb.Row) error {
					if err := row.Scan(new(string)); !errors.Is(err, sqldb.ErrNoRows) {
						t.Errorf("a missing row gave %v", err)
					}
					return errCheck
				})
			},
		}
		next := map[string]func(tx *sqldb.Tx) error{
			"the commit": func(*sqldb.Tx) error { return nil },
			"a flush":    func(tx *sqldb.Tx) error { return tx.Flush(ctx) },
			"a row":      func(tx *sqldb.Tx) error { return tx.QueryRow(ctx, countNames).Scan(new(int64)) },
			"an update": func(tx *sqldb.Tx) error {
				_, err := tx.Exec(ctx, `UPDATE deployment SET value = 'x'`)
				return err
			},
			"rows": func(tx *sqldb.Tx) error {
				return tx.EachRow(ctx, `SELECT name FROM deployment`, nil, func(row sqldb.Scanner) error { return row.Scan(new(string)) })
			},
		}
		for what, fail := range failures {
			for when, follow := range next {
				err := db.Write(ctx, func(tx *sqldb.Tx) error {
					if err := tx.DeferExec(ctx, insertName, []any{"d0", ""}, nil); err != nil {
						return err
					}
					if err := fail(tx); err != nil {
						return err
					}
					return follow(tx)
				})
				if what == "a duplicate" && !sqldb.IsDuplicate(err) || what != "a duplicate" && !errors.Is(err, errCheck) {
					t.Errorf("%s before %s: %v", what, when, err)
				}
				var n int64
				if err := db.QueryRow(ctx, countNames).Scan(&n); err != nil || n != 0 {
					t.Errorf("%s before %s left %d rows, %v", what, when, n, err)
				}
			}
		}
	})
}

// TestDeferredLockIsHeld has two transactions lock a row with a deferred
// statement and then count: the one that waited counts what the other wrote.
func TestDeferredLockIsHeld(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := context.Background()
		first, second := make(chan struct{}), make(chan error, 1)
		begin := sync.OnceFunc(func() { close(first) })
		lock := func(tx *sqldb.Tx) error {
			return tx.DeferExec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`, nil, nil)
		}
		go func() {
			<-first
			second <- db.Write(ctx, func(tx *sqldb.Tx) error {
				if err := lock(tx); err != nil {
					return err
				}
				var n int64
				if err := tx.QueryRow(ctx, countNames).Scan(&n); err != nil {
					return err
				}
				if n != 1 {
					return fmt.Errorf("the second transaction counts %d rows, want 1", n)
				}
				return nil
			})
		}()
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			if err := lock(tx); err != nil {
				return err
			}
			if err := tx.Flush(ctx); err != nil {
				return err
			}
			begin()
			time.Sleep(200 * time.Millisecond) // for the second one to wait for the row
			return tx.DeferExec(ctx, insertName, []any{"d1", ""}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}
