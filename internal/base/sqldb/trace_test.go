package sqldb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestTraceHearsStatements in the order in which a transaction sends them.
func TestTraceHearsStatements(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			var heard []string
			db, err := sqldb.Open(ctx, dbtest.URL(t, engine), sqldb.Options{MaxConns: 4, Now: time.Now, Trace: func(query string, args []any) {
				heard = append(heard, fmt.Sprint(query, args))
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			const insert, one, all = `INSERT INTO deployment (name, value) VALUES ($1, $2)`, `SELECT value FROM deployment WHERE name = $1`, `SELECT name FROM deployment WHERE value = $1`
			use := func(tx *sqldb.Tx) error {
				var value string
				if err := tx.QueryRow(ctx, one, "a").Scan(&value); err != nil {
					return err
				}
				return tx.EachRow(ctx, all, []any{"b"}, func(row sqldb.Scanner) error { return row.Scan(&value) })
			}
			err = db.Write(ctx, func(tx *sqldb.Tx) error {
				if _, err := tx.Exec(ctx, insert, "a", "b"); err != nil {
					return err
				}
				return use(tx)
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Read(ctx, use); err != nil {
				t.Fatal(err)
			}
			want := []string{insert + "[a b]", one + "[a]", all + "[b]", one + "[a]", all + "[b]"}
			if !slices.Equal(heard, want) {
				t.Errorf("heard %q, want %q", heard, want)
			}
		})
	}
}
