package sqldb_test

import (
	"errors"
	"slices"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

func TestQueries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		ctx := t.Context()
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			for _, name := range []string{"a", "b"} {
				added, err := sqldb.Changed(ctx, tx, `INSERT INTO deployment (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, name, "value of "+name)
				if err != nil {
					return err
				}
				if !added {
					t.Errorf("insert %s: changed = false", name)
				}
			}

			again, err := sqldb.Changed(ctx, tx, `INSERT INTO deployment (name, value) VALUES ('a', '') ON CONFLICT (name) DO NOTHING`)
			if err != nil || again {
				t.Errorf("second insert: changed = %t, %v", again, err)
			}
			value, err := sqldb.One[string](ctx, tx, `SELECT value FROM deployment WHERE name = $1`, "b")
			if err != nil || value != "value of b" {
				t.Errorf("one = %q, %v", value, err)
			}
			if _, err := sqldb.One[string](ctx, tx, `SELECT value FROM deployment WHERE name = $1`, "c"); !errors.Is(err, sqldb.ErrNoRows) {
				t.Errorf("one without a row: %v, want ErrNoRows", err)
			}
			value, found, err := sqldb.Find[string](ctx, tx, `SELECT value FROM deployment WHERE name = $1`, "c")
			if err != nil || found || value != "" {
				t.Errorf("find = %q, %t, %v", value, found, err)
			}

			var args sqldb.Args
			where := ` WHERE value <> ` + args.Add("") + ` AND name IN ` + sqldb.AddList(&args, []string{"a", "b", "c"})
			names, err := sqldb.All(ctx, tx, `SELECT name FROM deployment`+where+` ORDER BY name`, args, sqldb.Column[string])
			if err != nil || !slices.Equal(names, []string{"a", "b"}) {
				t.Errorf("all = %v, %v", names, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		for name, want := range map[string]bool{"a": true, "c": false} {
			got, err := sqldb.Exists(ctx, db, `SELECT 1 FROM deployment WHERE name = $1`, name)
			if err != nil || got != want {
				t.Errorf("exists %s = %t, %v", name, got, err)
			}
		}
	})
}
