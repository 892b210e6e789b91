// Package dbtest creates a fresh database of each kind for tests.
//
// SQLite databases are files in the test's temporary directory. The PostgreSQL
// server is started on first use from the installed programs, in a temporary
// directory, and stops when the test binary exits. The schema is created once
// for each kind and copied for every test.
//
// If PostgreSQL is not installed, its tests are skipped with a message that
// names the package; if CI is set, they fail instead. ATELIER_TEST_PG=skip
// always skips them. ATELIER_TEST_PG_BIN is the folder with the PostgreSQL
// programs.
package dbtest

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
)

// Engines are the kinds of databases that Each and URL support.
var Engines = []string{"sqlite", "postgres"}

// Each runs fn as a subtest for every kind of database, with an empty, migrated
// database.
func Each(t *testing.T, fn func(t *testing.T, db *sqldb.DB)) {
	t.Helper()
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(t, Open(t, URL(t, engine)))
		})
	}
}

// URL returns the URL of a new, migrated database without data. The database is
// removed when the test ends.
func URL(t testing.TB, engine string) string {
	t.Helper()
	if engine == "postgres" {
		return freshPostgres(t, true)
	}
	path := filepath.Join(t.TempDir(), "atelier.db")
	file, err := sqliteTemplate()
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatalf("sqlite for tests: %v", err)
	}
	return "sqlite://" + path
}

// Bare is like URL, but the database has no schema yet.
func Bare(t testing.TB, engine string) string {
	t.Helper()
	if engine == "postgres" {
		return freshPostgres(t, false)
	}
	return "sqlite://" + filepath.Join(t.TempDir(), "atelier.db")
}

// Open opens the database at the given URL and closes it when the test ends.
func Open(t testing.TB, address string) *sqldb.DB {
	t.Helper()
	return OpenAt(t, address, time.Now)
}

// limit is the time limit of database operations in tests, also of transactions
// that do nothing. It is longer than that of the program, because a machine that
// is busy elsewhere may suspend a test for seconds, and tests fill tables with
// many rows. Tests of the limits open the database with their own.
const limit = time.Minute

// OpenAt is like Open, but the database uses the given clock.
func OpenAt(t testing.TB, address string, now func() time.Time) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), withLimit(address), sqldb.Options{MaxConns: 8, Now: now, Limit: limit})
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	db.SetSealKey([]byte("a key for tests, of 32 bytes and n"))
	t.Cleanup(db.Close)
	return db
}

// withLimit adds the limit to the URL of a PostgreSQL database that has none.
func withLimit(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" {
		return address
	}
	const name = "idle_in_transaction_session_timeout"
	q := u.Query()
	q.Set(name, cmp.Or(q.Get(name), strconv.FormatInt(limit.Milliseconds(), 10)))
	u.RawQuery = q.Encode()
	return u.String()
}

// sqliteTemplate returns the content of a migrated SQLite file.
var sqliteTemplate = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "atelier-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "template.db")
	if err := migrate("sqlite://" + path); err != nil {
		return nil, err
	}
	return os.ReadFile(path) // the file is complete, because closing the last connection moves the write-ahead log into it
})

func migrate(address string) error {
	ctx := context.Background()
	db, err := sqldb.Open(ctx, address, sqldb.Options{MaxConns: 4, Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}
