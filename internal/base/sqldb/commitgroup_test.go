package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// groupFixture has writers of one SQLite database that commit together, and a
// second connection that sees only what was committed.
type groupFixture struct {
	*testing.T
	db, outside *sqldb.DB
}

func newGroupFixture(t *testing.T) groupFixture {
	t.Helper()
	t.Parallel()
	address := dbtest.URL(t, "sqlite")
	still := func() time.Time { return time.Unix(1_000_000, 0) } // so that no group is too old
	return groupFixture{t, dbtest.OpenAt(t, address, still), dbtest.Open(t, address)}
}

// write stores a row with the name, and then does more, which may be nil.
func (g groupFixture) write(ctx context.Context, name string, more func(tx *sqldb.Tx) error) error {
	return g.db.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ($1, '')`, name); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`); err != nil {
			return err
		}
		if more != nil {
			return more(tx)
		}
		return nil
	})
}

// isCommitted reports whether the row with the name is visible from outside.
func (g groupFixture) isCommitted(name string) bool {
	g.Helper()
	var n int64
	if err := g.outside.QueryRow(context.Background(), `SELECT count(*) FROM deployment WHERE name = $1`, name).Scan(&n); err != nil {
		g.Error(err)
	}
	return n == 1
}

// version returns how often write succeeded.
func (g groupFixture) version() (n int64) {
	g.Helper()
	if err := g.outside.QueryRow(g.Context(), `SELECT version FROM catalog WHERE id = 1`).Scan(&n); err != nil {
		g.Fatal(err)
	}
	return n
}

// together starts the writers while another one writes, in their order, so that
// they all wait and then form a group. It returns when all have ended.
func (g groupFixture) together(writers ...func()) {
	g.Helper()
	var group sync.WaitGroup
	alone := sqldb.WithLimit(context.Background(), time.Minute) // not one of the group
	err := g.db.Write(alone, func(*sqldb.Tx) error {
		for _, w := range writers {
			before := g.db.Stats().Waits
			group.Go(w)
			for end := time.Now().Add(30 * time.Second); g.db.Stats().Waits == before; {
				if time.Now().After(end) {
					return errors.New("a writer does not wait")
				}
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(20 * time.Millisecond) // for the last one to wait
		return nil
	})
	if err != nil {
		g.Error(err)
	}
	group.Wait()
}

// TestWritersCommitTogether has ten writers wait: they are in one transaction,
// and none returns before it is committed.
func TestWritersCommitTogether(t *testing.T) {
	g := newGroupFixture(t)
	var writers []func()
	var unseen atomic.Int64
	for i := range 10 {
		name := fmt.Sprint("w", i)
		before := fmt.Sprint("w", i-1)
		writers = append(writers, func() {
			err := g.write(context.Background(), name, func(tx *sqldb.Tx) error {
				var inside int64
				if err := tx.QueryRow(context.Background(), `SELECT count(*) FROM deployment WHERE name = $1`, before).Scan(&inside); err != nil {
					return err
				}
				if i > 0 && inside == 1 && !g.isCommitted(before) {
					unseen.Add(1)
				}
				return nil
			})
			if err != nil || !g.isCommitted(name) {
				t.Errorf("%s returned %v, committed: %v", name, err, g.isCommitted(name))
			}
		})
	}
	g.together(writers...)
	if got := unseen.Load(); got != 9 {
		t.Errorf("%d writers continued the transaction of the one before, want 9", got)
	}
	if got := g.version(); got != 10 {
		t.Errorf("version = %d, want 10", got)
	}
}

// TestGroupSurvivesOneWriter has one writer of a group fail in different ways.
// The others succeed, each exactly once.
func TestGroupSurvivesOneWriter(t *testing.T) {
	errOwn := errors.New("its own error")
	for _, c := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
		more func(ctx context.Context, tx *sqldb.Tx) error
		is   error // the error of the writer; nil means any
	}{
		{name: "fails", more: func(context.Context, *sqldb.Tx) error { return errOwn }, is: errOwn},
		{name: "panics", more: func(context.Context, *sqldb.Tx) error { panic(errOwn) }, is: errOwn},
		{name: "violates a constraint", more: func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ('bad', '')`)
			if !sqldb.IsDuplicate(err) {
				return fmt.Errorf("a duplicate gave %v", err)
			}
			return errors.Join(errOwn, err)
		}, is: errOwn},
		{name: "violates a constraint that is checked at the commit", more: func(ctx context.Context, tx *sqldb.Tx) error {
			if _, err := tx.Exec(ctx, `PRAGMA defer_foreign_keys = ON`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO ledger_entry (transaction_id, account_id, amount, created) VALUES ('none', 'none', 1, 1)`)
			return err
		}},
		{name: "loses the transaction", more: func(ctx context.Context, tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, `ROLLBACK`) // as SQLite does when the disk is full
			return errors.Join(errOwn, err)
		}, is: errOwn},
		{name: "is cancelled", more: func(ctx context.Context, tx *sqldb.Tx) error {
			cancel := ctx.Value(cancelKey{}).(context.CancelFunc)
			cancel()
			_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 100 WHERE id = 1`)
			return err
		}, is: context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGroupFixture(t)
			var writers []func()
			for i := range 6 {
				name := fmt.Sprint("w", i)
				writers = append(writers, func() {
					if err := g.write(context.Background(), name, nil); err != nil || !g.isCommitted(name) {
						t.Errorf("%s returned %v, committed: %v", name, err, g.isCommitted(name))
					}
				})
			}
			bad := func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				ctx = context.WithValue(ctx, cancelKey{}, cancel)
				err := func() (err error) {
					defer func() {
						if p := recover(); p != nil {
							err = p.(error)
						}
					}()
					return g.write(ctx, "bad", func(tx *sqldb.Tx) error { return c.more(ctx, tx) })
				}()
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("the bad writer returned %v, want %v", err, c.is)
				}
			}
			g.together(writers[0], writers[1], writers[2], bad, writers[3], writers[4], writers[5])
			if g.isCommitted("bad") {
				t.Error("the work of the bad writer was stored")
			}
			if got := g.version(); got != 6 {
				t.Errorf("version = %d, want 6", got)
			}
		})
	}
}

type cancelKey struct{}

// TestLostTransaction expects the error after which SQLite rolled back the
// transaction of a writer, not the one of the savepoint that is gone.
func TestLostTransaction(t *testing.T) {
	g := newGroupFixture(t)
	errDisk := errors.New("disk full")
	err := g.write(context.Background(), "bad", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(context.Background(), `ROLLBACK`)
		return errors.Join(errDisk, err)
	})
	if !errors.Is(err, errDisk) {
		t.Errorf("the writer returned %v, want %v", err, errDisk)
	}
	if err := g.write(context.Background(), "next", nil); err != nil || !g.isCommitted("next") {
		t.Errorf("the next writer returned %v, committed: %v", err, g.isCommitted("next"))
	}
}

// TestGroupSurvivesImpatientWriters has writers leave while they wait, and when
// their turn comes: the transaction of the others is committed all the same.
func TestGroupSurvivesImpatientWriters(t *testing.T) {
	g := newGroupFixture(t)
	var group sync.WaitGroup
	var stored atomic.Int64
	for w := range 16 {
		group.Go(func() {
			for i := range 50 {
				ctx, cancel := context.WithCancel(context.Background())
				if w%2 == 1 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(i%20)*50*time.Microsecond)
				}
				err := g.write(ctx, fmt.Sprint("w", w, "-", i), nil)
				cancel()
				if err == nil {
					stored.Add(1)
				} else if w%2 == 0 {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := g.version(); got != stored.Load() || got < 8*50 {
		t.Errorf("version = %d, but %d writers succeeded", got, stored.Load())
	}
}

// TestLongWritersAreAlone has a writer with a long limit between others: its
// transaction begins after that of the writers before it has been committed.
func TestLongWritersAreAlone(t *testing.T) {
	g := newGroupFixture(t)
	write := func(ctx context.Context, name string, more func(tx *sqldb.Tx) error) func() {
		return func() {
			if err := g.write(ctx, name, more); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	seen := func(before string) func(*sqldb.Tx) error {
		return func(*sqldb.Tx) error {
			if !g.isCommitted(before) {
				return fmt.Errorf("%s is not committed yet", before)
			}
			return nil
		}
	}
	background := context.Background()
	g.together(
		write(background, "a", nil),
		write(background, "b", nil),
		write(sqldb.WithLimit(background, time.Minute), "long", seen("b")),
		write(background, "c", seen("long")),
	)
}
