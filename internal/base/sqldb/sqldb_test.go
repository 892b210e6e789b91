package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

func TestOneQueryTextForBoth(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		// A driver that binds by order of appearance swaps these two.
		var a, b string
		if err := db.QueryRow(ctx, `SELECT CAST($2 AS TEXT), CAST($1 AS TEXT)`, "one", "two").Scan(&a, &b); err != nil {
			t.Fatal(err)
		}
		if a != "two" || b != "one" {
			t.Errorf("$2, $1 = %q, %q, want two, one", a, b)
		}
		var now sqldb.Time
		moment := time.Date(2026, 11, 15, 9, 30, 0, 123456000, time.UTC)
		if err := db.QueryRow(ctx, `SELECT CAST($1 AS BIGINT)`, sqldb.At(moment)).Scan(&now); err != nil {
			t.Fatal(err)
		}
		if !now.Equal(moment) {
			t.Errorf("time = %v, want %v", now, moment)
		}
		if err := db.QueryRow(ctx, `SELECT CAST(NULL AS BIGINT)`).Scan(&now); err != nil || !now.IsZero() {
			t.Errorf("null time = %v, %v, want the zero time", now, err)
		}
		err := db.QueryRow(ctx, `SELECT version FROM catalog WHERE id = 7`).Scan(new(int64))
		if !errors.Is(err, sqldb.ErrNoRows) {
			t.Errorf("missing row = %v, want ErrNoRows", err)
		}
	})
}

// TestRow reads every kind of variable that one row can be read into.
func TestRow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		var (
			text       string
			n          int
			big        int64
			yes, no    bool
			fraction   float64
			at         sqldb.Time
			none, some sql.Null[string]
		)
		row := db.QueryRow(ctx, `SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($2 AS BIGINT), $3 = CAST(7 AS BIGINT), $3 = CAST(8 AS BIGINT),
			CAST(0.5 AS DOUBLE PRECISION), CAST($4 AS BIGINT), CAST(NULL AS TEXT), CAST($1 AS TEXT)`,
			"a\x27b", 7, int64(7), sqldb.At(time.UnixMicro(5)))
		if err := row.Scan(&text, &n, &big, &yes, &no, &fraction, &at, &none, &some); err != nil {
			t.Fatal(err)
		}
		if text != "a'b" || n != 7 || big != 7 || !yes || no || fraction != 0.5 || at.UnixMicro() != 5 || none.Valid || some.V != "a'b" {
			t.Error(text, n, big, yes, no, fraction, at, none, some)
		}
		if err := db.QueryRow(ctx, `SELECT CAST(NULL AS TEXT)`).Scan(&text); err == nil {
			t.Error("NULL was read as text")
		}
		if err := db.QueryRow(ctx, `SELECT CAST('x' AS TEXT)`).Scan(&n); err == nil {
			t.Error("text was read as a number")
		}
		if err := db.QueryRow(ctx, `SELECT CAST('x' AS TEXT)`).Scan(&text, &text); err == nil {
			t.Error("one column was read into two variables")
		}
		if err := db.QueryRow(ctx, `SELECT nonsense`).Scan(&text); err == nil {
			t.Error("a broken query has an answer")
		}
		if err := db.QueryRow(ctx, `INSERT INTO deployment (name, value) VALUES ('a', 'b') RETURNING name`).Scan(&text); err == nil && db.Dialect.Name == "sqlite" {
			t.Error("a reader wrote")
		}
	})
}

func put(ctx context.Context, tx *sqldb.Tx, name string) error {
	_, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ($1, $2)`, name, "x")
	return err
}

func names(t *testing.T, db *sqldb.DB) []string {
	t.Helper()
	var all []string
	err := db.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
		all, err = sqldb.All(t.Context(), tx, `SELECT name FROM deployment ORDER BY name`, nil, func(r sqldb.Scanner) (s string, err error) {
			return s, r.Scan(&s)
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWriteIsAllOrNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		woken := 0
		broken := errors.New("no")
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			tx.AfterCommit(func() { woken++ })
			if err := put(ctx, tx, "lost"); err != nil {
				return err
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("write = %v, want the function's own error", err)
		}
		func() {
			defer func() { recover() }()
			db.Write(ctx, func(tx *sqldb.Tx) error {
				put(ctx, tx, "panicked")
				panic("no")
			})
		}()
		left, leave := context.WithCancel(ctx)
		db.Write(left, func(tx *sqldb.Tx) error {
			put(ctx, tx, "left")
			leave()
			return left.Err()
		})
		if err := db.Write(ctx, func(tx *sqldb.Tx) error {
			tx.AfterCommit(func() { woken++ })
			return put(ctx, tx, "kept")
		}); err != nil {
			t.Fatal(err)
		}
		if got := names(t, db); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("rows = %v, want only the committed one", got)
		}
		if woken != 1 {
			t.Errorf("told of %d commits, want 1", woken)
		}
	})
}

func TestDuplicateIsRecognised(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			return errors.Join(put(ctx, tx, "a"), put(ctx, tx, "a"))
		})
		if !sqldb.IsDuplicate(err) {
			t.Errorf("second insert = %v, want a duplicate", err)
		}
		if sqldb.IsDuplicate(errors.New("other")) || sqldb.IsDuplicate(nil) {
			t.Error("another error counts as a duplicate")
		}
	})
}

func TestManyWritersLoseNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		const writers, each = 16, 20
		var group sync.WaitGroup
		errs := make([]error, writers)
		for w := range writers {
			group.Go(func() {
				for range each {
					errs[w] = errors.Join(errs[w], db.Write(ctx, func(tx *sqldb.Tx) error {
						_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`)
						return err
					}))
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		var got int64
		if err := db.QueryRow(ctx, `SELECT version FROM catalog`).Scan(&got); err != nil || got != writers*each {
			t.Errorf("version = %d, %v, want %d", got, err, writers*each)
		}
	})
}

func TestReadSeesOneMoment(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		err := db.Read(ctx, func(tx *sqldb.Tx) error {
			var before, after int64
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM deployment`).Scan(&before); err != nil {
				return err
			}
			if err := db.Write(ctx, func(tx *sqldb.Tx) error { return put(ctx, tx, "new") }); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM deployment`).Scan(&after); err != nil {
				return err
			}
			if before != 0 || after != 0 {
				return fmt.Errorf("saw %d then %d rows, want 0 and 0", before, after)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		err = db.Read(ctx, func(tx *sqldb.Tx) error { return put(ctx, tx, "written in a read") })
		if err == nil {
			t.Error("a read transaction wrote")
		}
	})
}

func TestUnreachableDatabaseSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addresses := map[string]string{
		"sqlite":   "sqlite://" + filepath.Join(dir, "missing", "x.db"),
		"postgres": "postgres:///x?host=" + dir + "&user=x",
	}
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			_, err := sqldb.Open(t.Context(), address, sqldb.Options{MaxConns: 2, Now: time.Now})
			f, ok := errors.AsType[*fault.Error](err)
			if name == "sqlite" && err != nil {
				return // any error will do: the folder is missing, nothing can be retried
			}
			if !ok || f.Code != fault.Unavailable {
				t.Errorf("open = %v, want %s", err, fault.Unavailable)
			}
		})
	}
	for _, bad := range []string{"", "mysql://x", "sqlite://", "postgres://u:hunter2@:bad:port/x"} {
		_, err := sqldb.Open(t.Context(), bad, sqldb.Options{MaxConns: 2, Now: time.Now})
		if err == nil {
			t.Errorf("open %q worked", bad)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("open shows the password: %v", err)
		}
	}
}

func TestMigrateAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dbtest.Bare(t, engine)
			const nodes = 4
			var group sync.WaitGroup
			steps, errs := make([]int, nodes), make([]error, nodes)
			for i := range nodes {
				db := dbtest.Open(t, address)
				group.Go(func() { steps[i], errs[i] = db.Migrate(t.Context()) })
			}
			group.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			slices.Sort(steps)
			if steps[nodes-1] == 0 || steps[nodes-2] != 0 {
				t.Errorf("steps taken = %v, want all of them by one node", steps)
			}
			db := dbtest.Open(t, address)
			if err := db.CheckMigrated(t.Context()); err != nil {
				t.Errorf("migrated = %v, want nil", err)
			}
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Migrate(t.Context()); !errors.Is(err, sqldb.ErrNewer) {
				t.Errorf("migrate a newer database = %v, want ErrNewer", err)
			}
		})
	}
}

func TestVerifyNamesTheRow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		checks := []sqldb.Check{
			{Name: "fine", Query: `SELECT name FROM deployment WHERE name = 'never'`},
			{Name: "one catalog row", Query: `SELECT CAST(id AS TEXT) FROM catalog WHERE id = 1`},
		}
		got, err := db.VerifyChecks(t.Context(), checks)
		want := []sqldb.Violation{{Check: "one catalog row", Row: "1"}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("verify = %v, %v, want %v", got, err, want)
		}
	})
}

func TestMaintain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		if err := db.MaintainFiles(t.Context()); err != nil {
			t.Error(err)
		}
		if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return put(t.Context(), tx, "after") }); err != nil {
			t.Errorf("a write after the upkeep: %v", err)
		}
	})
}

// TestImpatientWriters has callers leave while they wait for the database, and
// another process hold its lock. Whoever comes after them must not suffer.
func TestImpatientWriters(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dbtest.URL(t, engine)
			db, other := dbtest.Open(t, address), dbtest.Open(t, address)
			touch := func(ctx context.Context, db *sqldb.DB, hold time.Duration) error {
				return db.Write(ctx, func(tx *sqldb.Tx) error {
					if _, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`); err != nil {
						return err
					}
					time.Sleep(hold)
					return nil
				})
			}
			for round := range 100 {
				var group sync.WaitGroup
				group.Go(func() {
					if err := touch(t.Context(), other, 2*time.Millisecond); err != nil {
						t.Errorf("the other process: %v", err)
					}
				})
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(round%30)*100*time.Microsecond)
				_ = touch(ctx, db, 0) // may or may not make it
				leave()
				if err := touch(t.Context(), db, 0); err != nil {
					t.Fatalf("round %d: a writer after one that left: %v", round, err)
				}
				group.Wait()
			}
		})
	}
}

// TestNowIsWhenTheTurnCame has a writer wait for another: its time is when it
// began to work, not when it came.
func TestNowIsWhenTheTurnCame(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	db := dbtest.OpenAt(t, dbtest.URL(t, "sqlite"), func() time.Time { return time.Unix(clock.Load(), 0) })
	clock.Store(100)
	second := make(chan time.Time, 1)
	err := db.Write(t.Context(), func(*sqldb.Tx) error {
		go db.Write(t.Context(), func(tx *sqldb.Tx) error { second <- tx.Now; return nil })
		time.Sleep(50 * time.Millisecond) // for the second to come; it cannot get further
		clock.Store(200)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := (<-second).Unix(); got != 200 {
		t.Errorf("now of the one that waited = %d, want 200", got)
	}
}

// TestFollowsTheServersClock has a node whose own clock is an hour fast.
func TestFollowsTheServersClock(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			wrong := func() time.Time { return time.Now().Add(time.Hour) }
			db, err := sqldb.Open(t.Context(), dbtest.URL(t, engine), sqldb.Options{MaxConns: 4, Now: wrong, Follow: true})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			want := time.Now()
			if engine == "sqlite" { // there is no other machine
				want = wrong()
			}
			near := func(what string, got time.Time) {
				t.Helper()
				if d := got.Sub(want).Abs(); d > time.Minute {
					t.Errorf("%s is %v off", what, d)
				}
			}
			near("now", db.Now())
			err = db.Write(t.Context(), func(tx *sqldb.Tx) error { near("the time of a write", tx.Now); return nil })
			if err == nil {
				err = db.Read(t.Context(), func(tx *sqldb.Tx) error { near("the time of a read", tx.Now); return nil })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInHasFewTexts(t *testing.T) {
	t.Parallel()
	texts := map[string]bool{}
	for n := 1; n <= 1000; n++ {
		values := make([]string, n)
		for i := range values {
			values[i] = string(rune('a' + i%26))
		}
		places, args := sqldb.In(values, "before")
		texts[places] = true
		if args[0] != "before" || args[n] != values[n-1] || args[len(args)-1] != values[n-1] || strings.Count(places, "$") != len(args)-1 {
			t.Fatalf("%d values are %s with %d arguments", n, places, len(args))
		}
	}
	if len(texts) != 6 {
		t.Errorf("there are %d texts, want 6", len(texts))
	}
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		err := db.Read(t.Context(), func(tx *sqldb.Tx) error {
			places, args := sqldb.In([]int64{3, 4, 5, 6, 7})
			all, err := sqldb.All(t.Context(), tx, `SELECT v FROM (SELECT CAST(7 AS BIGINT) AS v UNION ALL SELECT 8) AS t WHERE v IN `+places, args, func(row sqldb.Scanner) (n int64, err error) {
				err = row.Scan(&n)
				return n, err
			})
			if len(all) != 1 || all[0] != 7 {
				t.Errorf("found %v", all)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
