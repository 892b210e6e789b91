package sqldb_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
)

// pair is a PostgreSQL server and its streaming replica.
type pair struct {
	primary, replica *servers.Postgres
}

// startPair starts a server and its replica. The settings let the replica apply
// changes at once, also those that conflict with what it reads.
var startPair = sync.OnceValues(func() (pair, error) {
	primary, err := servers.StartPostgres("-F")
	if err != nil {
		return pair{}, err
	}
	replica, err := primary.StartReplica("-F", "-c", "max_standby_streaming_delay=0")
	return pair{primary, replica}, err
})

// where returns which server answers a transaction of read, and how many rows
// it sees.
func where(t *testing.T, ctx context.Context, read func(context.Context, func(*sqldb.Tx) error) error) (isReplica bool, rows int64) {
	t.Helper()
	err := read(ctx, func(tx *sqldb.Tx) error {
		if !tx.ReadOnly {
			t.Error("the transaction may write")
		}
		return tx.QueryRow(ctx, `SELECT pg_is_in_recovery(), count(*) FROM thing`).Scan(&isReplica, &rows)
	})
	if err != nil {
		t.Fatal(err)
	}
	return isReplica, rows
}

// TestReplica reads from a real streaming replica that falls behind, comes back
// and dies. Reads never fail, and are never older than allowed.
func TestReplica(t *testing.T) {
	t.Parallel()
	p := servers.Need(t, "PostgreSQL", "ATELIER_TEST_PG", startPair)
	ctx := t.Context()
	db, err := sqldb.Open(ctx, p.primary.URL("postgres"), sqldb.Options{MaxConns: 4, Now: time.Now, Limit: time.Minute, IdleConns: 2, ConnLifetime: time.Minute, ConnIdleTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := sqldb.UseReplica(ctx, db, p.replica.URL("postgres"), sqldb.ReplicaOptions{MaxConns: 2, MaxLag: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	exec := func(query string) {
		t.Helper()
		if err := db.Write(ctx, func(tx *sqldb.Tx) error { _, err := tx.Exec(ctx, query); return err }); err != nil {
			t.Fatal(err)
		}
	}
	usable := func() bool { return db.Stats().Replica.Usable }
	exec(`CREATE TABLE thing (n BIGINT)`)
	exec(`INSERT INTO thing VALUES (1)`)

	watch.Until(t, "the replica to be used", func() bool {
		isReplica, rows := where(t, ctx, db.ReadStale)
		return isReplica && rows == 1
	})
	if isReplica, _ := where(t, ctx, db.Read); isReplica {
		t.Error("Read used the replica")
	}
	firstPage := func(ctx context.Context, fn func(*sqldb.Tx) error) error { return sqldb.ReadList(ctx, db, true, fn) }
	if isReplica, _ := where(t, ctx, firstPage); isReplica {
		t.Error("the first page of a list came from the replica")
	}
	nextPage := func(ctx context.Context, fn func(*sqldb.Tx) error) error { return sqldb.ReadList(ctx, db, false, fn) }
	watch.Until(t, "a later page from the replica", func() bool { isReplica, _ := where(t, ctx, nextPage); return isReplica })
	guarded := sqldb.WithGuard(ctx, func(context.Context, *sqldb.Tx) error { return nil })
	if isReplica, _ := where(t, guarded, db.ReadStale); isReplica {
		t.Error("a transaction with a guard used the replica")
	}

	// An error of the function is no failure of the replica.
	calls := 0
	failure := errors.New("no such thing")
	if err := db.ReadStale(ctx, func(*sqldb.Tx) error { calls++; return failure }); !errors.Is(err, failure) || calls != 1 {
		t.Errorf("ReadStale = %v after %d calls", err, calls)
	}

	// What the replica cannot do, the primary does.
	before := db.Stats().Replica
	watch.Until(t, "a function that fails on the replica", func() bool {
		var isReplica bool
		err := db.ReadStale(ctx, func(tx *sqldb.Tx) error {
			if err := tx.QueryRow(ctx, `SELECT pg_is_in_recovery()`).Scan(&isReplica); err != nil {
				return err
			}
			return tx.QueryRow(ctx, `SELECT count(*) FROM thing WHERE pg_current_wal_lsn() IS NOT NULL`).Scan(new(int64)) // an error during recovery
		})
		if err != nil || isReplica {
			t.Fatalf("ReadStale = %v, on the replica: %t", err, isReplica)
		}
		now := db.Stats().Replica
		return now.Usable && now.Fallbacks > before.Fallbacks
	})

	// A replica that falls behind is left alone, and used again later.
	if err := p.replica.Exec(ctx, `SELECT pg_wal_replay_pause()`); err != nil {
		t.Fatal(err)
	}
	exec(`INSERT INTO thing VALUES (2)`)
	watch.Until(t, "the replica to count as too far behind", func() bool { return !usable() })
	if isReplica, rows := where(t, ctx, db.ReadStale); isReplica || rows != 2 {
		t.Errorf("with a replica that is behind: replica %t, %d rows; want the primary with 2", isReplica, rows)
	}
	if err := p.replica.Exec(ctx, `SELECT pg_wal_replay_resume()`); err != nil {
		t.Fatal(err)
	}
	watch.Until(t, "the replica to be used again", func() bool {
		isReplica, rows := where(t, ctx, db.ReadStale)
		return isReplica && rows == 2
	})

	// A replica that dies costs no read. That ends the pair, so it comes last.
	if err := syscall.Kill(p.replica.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	watch.Until(t, "the replica to be away", func() bool {
		if _, rows := where(t, ctx, db.ReadStale); rows != 2 {
			t.Fatalf("%d rows, want 2", rows)
		}
		return !usable()
	})
	stats := db.Stats().Replica
	t.Logf("%d reads by the replica, %d by the primary instead", stats.Reads, stats.Fallbacks)
	if stats.Reads == 0 || stats.Fallbacks == 0 {
		t.Errorf("stats = %+v", stats)
	}
}

// TestReplicaAddresses refuses what cannot be a replica.
func TestReplicaAddresses(t *testing.T) {
	t.Parallel()
	lite, err := sqldb.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "a.db"), sqldb.Options{MaxConns: 1, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer lite.Close()
	if err := sqldb.UseReplica(t.Context(), lite, "postgres://x/y", sqldb.ReplicaOptions{}); err == nil {
		t.Error("SQLite has a replica")
	}
	if err := lite.ReadStale(t.Context(), func(tx *sqldb.Tx) error { return tx.QueryRow(t.Context(), `SELECT 1`).Scan(new(int64)) }); err != nil {
		t.Errorf("ReadStale without a replica: %v", err)
	}
}

// mayBeStale are the files whose reads may be some seconds old, with their
// number of such reads. Each was reviewed: none reads a credential, a
// permission, a balance, a key, or what a change depends on.
var mayBeStale = map[string]int{
	"file/library/item.go":       1, // pages of the library after the first
	"file/library/library.go":    1, // pages of the uploads after the first
	"file/library/mark.go":       1, // the number of items
	"money/report/service.go":    1, // reports of companies
	"notify/webhook/delivery.go": 1, // pages of the deliveries after the first
	"run/generation/status.go":   1, // pages of the runs after the first
	"base/sqldb/replica.go":      1, // ReadList itself
}

// TestStaleReads holds the list of reads that may use the replica.
func TestStaleReads(t *testing.T) {
	t.Parallel()
	const internal = "../.."
	call := regexp.MustCompile(`\.(ReadStale|ReadList)\(`)
	found := map[string]int{}
	err := filepath.WalkDir(internal, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := len(call.FindAll(text, -1)); n > 0 {
			name, err := filepath.Rel(internal, path)
			if err != nil {
				return err
			}
			found[filepath.ToSlash(name)] = n
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(found, mayBeStale) {
		t.Errorf("reads that may be stale = %v, want %v: review each new one", found, mayBeStale)
	}
}
