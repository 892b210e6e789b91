package sqldb_test

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

func openReadOnly(t *testing.T, address string) (*sqldb.DB, error) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{MaxConns: 4, Now: time.Now, ReadOnly: true})
	if err == nil {
		t.Cleanup(db.Close)
	}
	return db, err
}

func mustOpenReadOnly(t *testing.T, address string) *sqldb.DB {
	t.Helper()
	db, err := openReadOnly(t, address)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func readVersion(t *testing.T, db *sqldb.DB) (version int64, err error) {
	t.Helper()
	err = db.Read(t.Context(), func(tx *sqldb.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT version FROM catalog`).Scan(&version)
	})
	return version, err
}

func raiseVersion(t *testing.T, db *sqldb.DB) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE catalog SET version = version + 1 WHERE id = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadOnly reads and refuses to write.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dbtest.URL(t, engine)
			db := mustOpenReadOnly(t, address)
			if err := db.CheckMigrated(t.Context()); err != nil {
				t.Errorf("migrated = %v", err)
			}
			if _, err := readVersion(t, db); err != nil {
				t.Errorf("read = %v", err)
			}
			if err := db.Ping(t.Context()); err != nil {
				t.Errorf("ping = %v", err)
			}
			if err := db.Write(t.Context(), func(*sqldb.Tx) error { return nil }); err == nil {
				t.Error("write was not refused")
			}
			if _, err := db.Migrate(t.Context()); err == nil {
				t.Error("migrate was not refused")
			}
			if err := db.MaintainFiles(t.Context()); err != nil {
				t.Errorf("maintain = %v", err)
			}
		})
	}
}

// TestNoInstallation looks at databases that hold nothing, and leaves them so.
func TestNoInstallation(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dbtest.Bare(t, engine)
			tables := `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()`
			if engine == "sqlite" {
				tables = `SELECT count(*) FROM sqlite_master`
				if _, err := openReadOnly(t, address); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a file that is missing = %v", err)
				}
				dbtest.Open(t, address).Close()
			}
			db := mustOpenReadOnly(t, address)
			if err := db.CheckMigrated(t.Context()); !errors.Is(err, sqldb.ErrNone) {
				t.Errorf("migrated = %v", err)
			}
			if err := db.CheckExists(t.Context()); !errors.Is(err, sqldb.ErrNone) {
				t.Errorf("exists = %v", err)
			}
			var n int64
			if err := db.QueryRow(t.Context(), tables).Scan(&n); err != nil || n != 0 {
				t.Errorf("%d tables, %v, want none", n, err)
			}
		})
	}
}

// sqliteFile gives a migrated database that nobody has open.
func sqliteFile(t *testing.T) (address, path string) {
	t.Helper()
	address = dbtest.URL(t, "sqlite")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return address, u.Path
}

// filesOf lists the files of a database.
func filesOf(t *testing.T, path string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)) && !strings.HasSuffix(e.Name(), ".lock") {
			all = append(all, strings.TrimPrefix(e.Name(), filepath.Base(path)))
		}
	}
	return all
}

// TestReadOnlyAlone reads a file that nobody has open, and notices that somebody
// opens it meanwhile.
func TestReadOnlyAlone(t *testing.T) {
	t.Parallel()
	address, path := sqliteFile(t)
	db := mustOpenReadOnly(t, address)
	if _, err := readVersion(t, db); err != nil {
		t.Errorf("read = %v", err)
	}
	if got := filesOf(t, path); !slices.Equal(got, []string{""}) {
		t.Errorf("files = %q, want the database alone", got)
	}
	raiseVersion(t, dbtest.Open(t, address))
	if _, err := readVersion(t, db); !fault.Is(err, fault.Unavailable) {
		t.Errorf("read beside somebody who came later = %v, want unavailable", err)
	}
}

// TestReadOnlyAfterCrash reads what a process left that was killed.
func TestReadOnlyAfterCrash(t *testing.T) {
	t.Parallel()
	address, path := sqliteFile(t)
	live := dbtest.Open(t, address)
	raiseVersion(t, live)
	left := filepath.Join(t.TempDir(), "left.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		text, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(left+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	db := mustOpenReadOnly(t, "sqlite://"+left)
	if version, err := readVersion(t, db); err != nil || version != 1 {
		t.Errorf("version = %d, %v, want the one in the log", version, err)
	}
	db.Close()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		was, err := os.ReadFile(path + suffix)
		is, err2 := os.ReadFile(left + suffix)
		if errors.Join(err, err2) != nil || !slices.Equal(was, is) {
			t.Errorf("%q was changed", suffix)
		}
	}

	if err := os.Remove(left + "-shm"); err != nil {
		t.Fatal(err)
	}
	if _, err := openReadOnly(t, "sqlite://"+left); err == nil || !strings.Contains(err.Error(), "its index (the file ending in -shm) is missing") {
		t.Errorf("open without the index = %v", err)
	}
	if got := filesOf(t, left); !slices.Equal(got, []string{"", "-wal"}) {
		t.Errorf("files = %q", got)
	}
}
