package sqldb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestCopyWhileOthersWrite copies a database again and again while two
// processes' worth of connections move amounts between rows. Every copy has the
// sum that every transaction leaves, and the writers are not kept waiting.
func TestCopyWhileOthersWrite(t *testing.T) {
	t.Parallel()
	address := dbtest.Bare(t, "sqlite")
	db, other := dbtest.Open(t, address), dbtest.Open(t, address)
	const rows, filling = 100, 4 << 10
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(t.Context(), `CREATE TABLE amount (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, filling TEXT NOT NULL)`); err != nil {
			return err
		}
		for i := range rows {
			if _, err := tx.Exec(t.Context(), `INSERT INTO amount VALUES ($1, 100, $2)`, i, strings.Repeat("x", filling)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var writes atomic.Int64
	var group sync.WaitGroup
	for i, w := range []*sqldb.DB{db, other} {
		group.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				err := w.Write(t.Context(), func(tx *sqldb.Tx) error {
					if _, err := tx.Exec(t.Context(), `UPDATE amount SET n = n - 1 WHERE id = $1`, n%rows); err != nil {
						return err
					}
					_, err := tx.Exec(t.Context(), `UPDATE amount SET n = n + 1 WHERE id = $1`, (n*7+1)%rows)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				writes.Add(1)
			}
		})
	}
	defer group.Wait()
	defer stop()

	for round := range 5 {
		for began := writes.Load(); writes.Load() < began+5; {
			time.Sleep(time.Millisecond)
		}
		path := filepath.Join(t.TempDir(), "copy of it.db")
		if err := db.CopyTo(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode = %v, %v, want 0600", info.Mode(), err)
		}
		made := dbtest.Open(t, "sqlite://"+path)
		problems, err := made.CheckIntegrity(t.Context())
		if err != nil || len(problems) > 0 {
			t.Errorf("integrity: %v, %v", problems, err)
		}
		var sum int64
		if err := made.QueryRow(t.Context(), `SELECT sum(n) FROM amount`).Scan(&sum); err != nil || sum != 100*rows {
			t.Errorf("round %d: sum = %d, %v, want %d", round, sum, err, 100*rows)
		}
	}
}

func TestCopyThatCannotBe(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.Bare(t, "sqlite"))
	path := filepath.Join(t.TempDir(), "copy.db")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.CopyTo(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a cancelled copy is left: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.CopyTo(t.Context(), path); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another file: %v", err)
	}
	if kept, _ := os.ReadFile(path); string(kept) != "mine" {
		t.Errorf("another file was overwritten with %d bytes", len(kept))
	}
}

func TestIntegrityFindsDamage(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t, dbtest.Bare(t, "sqlite"))
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := db.CopyTo(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The page of an index: without the schema the file cannot be opened, and
	// without a table its rows cannot be read.
	page, err := sqldb.One[int64](t.Context(), dbtest.Open(t, "sqlite://"+path), `SELECT rootpage FROM sqlite_master WHERE name = 'ledger_entry_moved'`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("junk", 1024)), (page-1)*4096); err != nil {
		t.Fatal(err)
	}
	f.Close()
	damaged := dbtest.Open(t, "sqlite://"+path)
	problems, err := damaged.CheckIntegrity(t.Context())
	if err != nil || len(problems) == 0 {
		t.Errorf("SQLite finds %v wrong with a damaged file, %v", problems, err)
	}
}
