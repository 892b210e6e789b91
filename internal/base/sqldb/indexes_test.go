package sqldb_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestInterruptedIndexIsBuiltAgain migrates a PostgreSQL database on which an
// earlier migration was interrupted while it built an index, with two processes
// at the same time.
func TestInterruptedIndexIsBuiltAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	address := dbtest.Bare(t, "postgres")
	db := dbtest.Open(t, address)
	if err := db.MigrateTo(ctx, 30); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	// PostgreSQL marks an index as invalid until it is complete.
	for _, statement := range []string{
		`CREATE INDEX run_unpruned ON run (finished) WHERE finished IS NOT NULL AND NOT pruned`,
		`CREATE INDEX others ON run (seed)`,
		`UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid IN ('run_unpruned'::regclass, 'others'::regclass)`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}

	other := dbtest.Open(t, address)
	ended := make(chan error, 1)
	go func() {
		_, err := other.Migrate(ctx)
		ended <- err
	}()
	if _, err := db.Migrate(ctx); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{"run_unpruned": true, "audit_act": true, "others": false} {
		valid, err := sqldb.One[bool](ctx, db, `SELECT indisvalid FROM pg_index WHERE indexrelid = CAST($1 AS TEXT)::regclass`, name)
		if err != nil || valid != want {
			t.Errorf("index %s is valid: %v, %v; want %v", name, valid, err, want)
		}
	}
}
