package sqldb_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/watch"
)

// openLimited opens a database whose operations end after a second.
func openLimited(t *testing.T, address string) *sqldb.DB {
	t.Helper()
	return openWith(t, address, time.Second)
}

// openWith opens a database with a limit of operations, 0 for the program's.
func openWith(t *testing.T, address string, limit time.Duration) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{MaxConns: 8, Now: time.Now, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// TestPausedServer stops PostgreSQL under operations that go on and others that
// begin: all of them end as unavailable, and all is well when it goes on.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	server := dbtest.OwnServer(t)
	db := openLimited(t, server.URL)
	ctx := context.Background() // a caller who would wait for ever
	touch := func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`)
		return err
	}
	operations := map[string]func() error{
		"ping":  func() error { return db.Ping(ctx) },
		"write": func() error { return db.Write(ctx, touch) },
		"read": func() error {
			return db.Read(ctx, func(tx *sqldb.Tx) error {
				var n int64
				return tx.QueryRow(ctx, `SELECT version FROM catalog`).Scan(&n)
			})
		},
		"long read": func() error {
			_, err := db.VerifyChecks(ctx, []sqldb.Check{{Name: "x", Query: `SELECT 'x' WHERE FALSE`}})
			return err
		},
		"write with pause": nil,
	}
	var resume func()
	operations["write with pause"] = func() error {
		return db.Write(ctx, func(tx *sqldb.Tx) error {
			if err := touch(tx); err != nil {
				return err
			}
			if resume == nil {
				resume = server.Pause()
			}
			return touch(tx)
		})
	}

	// The pause begins in the middle of a transaction.
	begin := time.Now()
	if err := operations["write with pause"](); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a write that the pause came upon = %v, want unavailable", err)
	}
	var group sync.WaitGroup
	for name, do := range operations {
		for range 10 { // more than there are connections
			group.Go(func() {
				if err := do(); !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s during the pause = %v, want unavailable", name, err)
				}
			})
		}
	}
	group.Wait()
	watch.Took(t, "the operations", time.Since(begin), 8*time.Second)

	resume()
	for deadline := time.Now().Add(10 * time.Second); db.Ping(ctx) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the database is not back 10 s after the pause")
		}
	}
	for name, do := range operations {
		for range 10 {
			group.Go(func() {
				if err := do(); err != nil {
					t.Errorf("%s after the pause = %v", name, err)
				}
			})
		}
	}
	group.Wait()
}

// TestPausedClient has a client stop in the middle of a transaction, as a paused
// node does: whoever waits for its rows gets them, and the client's transaction
// runs again, as a whole, when it goes on.
func TestPausedClient(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t, "postgres")
	paused := dbtest.Open(t, address+"&idle_in_transaction_session_timeout=500")
	db := openWith(t, address, 0)
	ctx := t.Context()
	touch := func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`)
		return err
	}
	locked, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	tries := 0
	go func() {
		ended <- paused.Write(ctx, func(tx *sqldb.Tx) error {
			if err := touch(tx); err != nil {
				return err
			}
			if tries++; tries == 1 {
				close(locked)
			}
			<-goOn
			return touch(tx)
		})
	}()
	<-locked
	if err := db.Write(ctx, touch); err != nil {
		t.Errorf("a write that waits for a paused node = %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil || tries != 2 {
		t.Errorf("the paused node's write = %v after %d tries, want success at the second", err, tries)
	}
	var version int64
	if err := db.QueryRow(ctx, `SELECT version FROM catalog`).Scan(&version); err != nil || version != 3 {
		t.Errorf("version = %d, %v, want the other's change and both of the second try", version, err)
	}
}

// TestConflictsWithoutEnd has each try of a transaction conflict with others:
// the caller is told to try again.
func TestConflictsWithoutEnd(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.URL(t, "postgres"))
	ctx := t.Context()
	tries := 0
	err := db.Write(ctx, func(tx *sqldb.Tx) error {
		tries++
		_, err := tx.Exec(ctx, `DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''40001''; END'`)
		return err
	})
	if !fault.Is(err, fault.Unavailable) || tries != 5 {
		t.Errorf("write = %v after %d tries, want unavailable after 5", err, tries)
	}
}

// TestLockTimesOut has a transaction hold a row for longer than others wait.
func TestLockTimesOut(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t, "postgres")
	holder, waiter := dbtest.Open(t, address), openLimited(t, address+"&lock_timeout=100")
	ctx := t.Context()
	touch := func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`)
		return err
	}
	err := holder.Write(ctx, func(tx *sqldb.Tx) error {
		if err := touch(tx); err != nil {
			return err
		}
		err := waiter.Write(ctx, touch)
		if !fault.Is(err, fault.Unavailable) || !sqldb.IsLockTimeout(err) {
			t.Errorf("a write that waits for the row = %v, want a lock that timed out", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSessionLimits reads the limits that a connection has, and those of a long
// operation.
func TestSessionLimits(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t, "postgres")
	db, chosen := openWith(t, address, 0), openWith(t, address+"&lock_timeout=7s", 0)
	show := func(db *sqldb.DB, ctx context.Context, name string) (value string) {
		t.Helper()
		err := db.Read(ctx, func(tx *sqldb.Tx) error { return tx.QueryRow(ctx, `SHOW `+name).Scan(&value) })
		if err != nil {
			t.Errorf("show %s: %v", name, err)
		}
		return value
	}
	long := sqldb.WithLimit(t.Context(), time.Hour)
	for _, c := range []struct {
		db   *sqldb.DB
		ctx  context.Context
		name string
		want string
	}{
		{db, t.Context(), "statement_timeout", "65s"},
		{db, t.Context(), "lock_timeout", "2s"},
		{db, t.Context(), "idle_in_transaction_session_timeout", "3s"},
		{db, long, "statement_timeout", "1h"},
		{db, t.Context(), "statement_timeout", "65s"},
		{chosen, t.Context(), "lock_timeout", "7s"},
		{chosen, t.Context(), "statement_timeout", "65s"},
	} {
		if got := show(c.db, c.ctx, c.name); got != c.want {
			t.Errorf("%s = %s, want %s", c.name, got, c.want)
		}
	}
	var major int64
	if err := db.QueryRow(t.Context(), `SELECT CAST(current_setting('server_version_num') AS BIGINT) / 10000`).Scan(&major); err != nil {
		t.Fatal(err)
	}
	if major >= 17 {
		if got := show(db, t.Context(), "transaction_timeout"); got != "75s" {
			t.Errorf("transaction_timeout = %s, want 75s", got)
		}
	}
}

// TestSilentServer connects to something that takes connections and says nothing.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	begin := time.Now()
	_, err = sqldb.Open(context.Background(), "postgres://x@"+listener.Addr().String()+"/x?sslmode=disable", sqldb.Options{MaxConns: 4, Now: time.Now, Limit: time.Second})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("open = %v, want unavailable", err)
	}
	watch.Took(t, "open", time.Since(begin), 5*time.Second)
}

// TestBusySQLite has another process hold the lock, and a writer of this process
// keep its turn, for longer than an operation may take.
func TestBusySQLite(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t, "sqlite")
	holder, db := dbtest.Open(t, address), openLimited(t, address)
	ctx := context.Background()
	touch := func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`)
		return err
	}
	tryAll := func(when string) {
		t.Helper()
		begin := time.Now()
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if err := db.Write(ctx, touch); !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s: write = %v, want unavailable", when, err)
				}
			})
		}
		group.Wait()
		watch.Took(t, when+": the writes", time.Since(begin), 4*time.Second)
	}
	err := holder.Write(ctx, func(tx *sqldb.Tx) error {
		tryAll("another process writes")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		tryAll("this process writes")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Write(ctx, touch); err != nil {
		t.Errorf("a write after that = %v", err)
	}
	err = db.Read(ctx, func(tx *sqldb.Tx) error {
		time.Sleep(1200 * time.Millisecond) // past the limit
		return tx.QueryRow(ctx, `SELECT 1`).Scan(new(int64))
	})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("a read that takes too long = %v, want unavailable", err)
	}
}

// TestBudget runs operations one after the other, each of which waits for a
// writer that does not end: together they take no longer than their budget, and
// the database is not taken for dead because of it.
func TestBudget(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dbtest.URL(t, engine)
			db := openLimited(t, address) // a second for each
			if engine == "postgres" {
				address += "&idle_in_transaction_session_timeout=60000"
			}
			holder := dbtest.Open(t, address)
			touch := func(ctx context.Context) error {
				return db.Write(ctx, func(tx *sqldb.Tx) error {
					_, err := tx.Exec(ctx, `UPDATE catalog SET version = version + 1 WHERE id = 1`)
					return err
				})
			}
			held := make(chan struct{})
			release := make(chan struct{})
			ended := make(chan error, 1)
			go func() {
				ended <- holder.Write(sqldb.WithLimit(context.Background(), time.Minute), func(tx *sqldb.Tx) error {
					_, err := tx.Exec(context.Background(), `UPDATE catalog SET version = version + 1 WHERE id = 1`)
					close(held)
					<-release
					return err
				})
			}()
			<-held

			ctx, budget := sqldb.WithBudget(t.Context(), 1200*time.Millisecond)
			begin := time.Now()
			for range 5 {
				if err := touch(ctx); !fault.Is(err, fault.Unavailable) {
					t.Errorf("a write = %v, want unavailable", err)
				}
			}
			took := time.Since(begin)
			if took < time.Second {
				t.Errorf("five writes took %v, want about 1.2 s", took)
			}
			watch.Took(t, "five writes", took, 4*time.Second)
			if err := db.Ping(t.Context()); err != nil { // with all the time it needs
				t.Errorf("another request = %v", err)
			}

			close(release)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			budget.Lift() // the answer begins
			for range 5 {
				if err := touch(ctx); err != nil {
					t.Errorf("a write after the answer began = %v", err)
				}
			}
		})
	}
}
