// Package dbtest creates a fresh database of each kind for tests.
//
// SQLite is a file in the test's directory. PostgreSQL is a real server that the
// test binary starts on first use from the installed programs, in a temporary
// directory, and that ends with the binary. Both are migrated once and copied
// for every test.
//
// If PostgreSQL is not installed, its tests are skipped with a line that names
// the package; with CI set they fail instead. ATELIER_TEST_PG=skip always skips
// them, ATELIER_TEST_PG_BIN names the folder of the programs.
package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
)

// Engines are the databases that Each and URL support.
var Engines = []string{"sqlite", "postgres"}

// Each runs fn once on an empty, migrated database of every kind.
func Each(t *testing.T, fn func(t *testing.T, db *sqldb.DB)) {
	t.Helper()
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fn(t, Open(t, URL(t, engine)))
		})
	}
}

// URL returns the address of an empty, migrated database that lasts as long as
// the test.
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

// Bare is URL for a database that has no schema yet.
func Bare(t testing.TB, engine string) string {
	t.Helper()
	if engine == "postgres" {
		return freshPostgres(t, false)
	}
	return "sqlite://" + filepath.Join(t.TempDir(), "atelier.db")
}

// Open opens the database at address and closes it with the test.
func Open(t testing.TB, address string) *sqldb.DB {
	t.Helper()
	return OpenAt(t, address, time.Now)
}

// OpenAt is Open with the test's own clock.
func OpenAt(t testing.TB, address string, now func() time.Time) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{MaxConns: 8, Now: now})
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	db.SetSealKey([]byte("a key for tests, of 32 bytes and n"))
	t.Cleanup(db.Close)
	return db
}

// sqliteTemplate is the content of a migrated database file.
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
	return os.ReadFile(path) // complete: closing the last connection empties the WAL
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
