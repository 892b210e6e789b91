package sqldb_test

import (
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestIndexOrder reads the newest rows of one large account among many small
// ones with a plan for all accounts.
func TestIndexOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		for _, statement := range []string{
			`CREATE TABLE thing (id TEXT NOT NULL PRIMARY KEY, account_id TEXT NOT NULL, created BIGINT NOT NULL)`,
			`CREATE INDEX thing_newest ON thing (account_id, created, id)`,
			`INSERT INTO thing (id, account_id, created)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
			SELECT 'id' || i, CASE WHEN i > 2000 THEN 'large' ELSE 'small' || i END, i FROM n`,
			`ANALYZE thing`,
		} {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(t.Context(), statement); return err })
			if err != nil {
				t.Fatal(err)
			}
		}

		const query = `SELECT id FROM thing WHERE account_id = $1 ORDER BY created DESC, id DESC LIMIT $2`
		err := db.Read(sqldb.WithIndexOrder(t.Context()), func(tx *sqldb.Tx) error {
			all, err := sqldb.All(t.Context(), tx, query, []any{"large", int64(3)}, sqldb.Column[string])
			if got := strings.Join(all, " "); got != "id5000 id4999 id4998" {
				t.Errorf("the newest are %s", got)
			}
			if err != nil || tx.Dialect.Name != "postgres" {
				return err
			}

			if _, err := tx.Exec(t.Context(), `PREPARE newest (TEXT, BIGINT) AS `+query); err != nil {
				return err
			}
			lines, err := sqldb.All(t.Context(), tx, `EXPLAIN EXECUTE newest ('large', 3)`, nil, sqldb.Column[string])
			plan := strings.Join(lines, "\n")
			if !strings.Contains(plan, "thing_newest") || !strings.Contains(plan, "account_id = $1") || strings.Contains(plan, "Sort") {
				t.Errorf("the plan is for one account, or reads more than a page:\n%s", plan)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestPlanSettings checks that the settings of a transaction end with it, and
// that the transaction is still a snapshot that cannot write.
func TestPlanSettings(t *testing.T) {
	address := dbtest.URL(t, "postgres")
	db, err := sqldb.Open(t.Context(), address, sqldb.Options{MaxConns: 1, Now: time.Now, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const query = `SELECT current_setting('plan_cache_mode') || ' ' || current_setting('enable_sort') || ' ' || current_setting('transaction_isolation') || ' ' || current_setting('transaction_read_only') || ' ' || current_setting('max_parallel_workers_per_gather')`
	ctx := t.Context()
	for range 2 {
		for _, c := range []struct {
			read func(func(*sqldb.Tx) error) error
			want string
		}{
			{func(fn func(*sqldb.Tx) error) error { return db.Read(sqldb.WithIndexOrder(ctx), fn) }, "force_generic_plan off repeatable read on 0"},
			{func(fn func(*sqldb.Tx) error) error { return db.Read(sqldb.WithReusedPlans(ctx), fn) }, "force_generic_plan on repeatable read on 0"},
			{func(fn func(*sqldb.Tx) error) error { return db.Read(ctx, fn) }, "auto on repeatable read on 2"},
			{func(fn func(*sqldb.Tx) error) error { return db.Write(sqldb.WithIndexOrder(ctx), fn) }, "auto on read committed off 2"},
		} {
			var got string
			err := c.read(func(tx *sqldb.Tx) error { return tx.QueryRow(ctx, query).Scan(&got) })
			if err != nil || got != c.want {
				t.Errorf("the settings are %q, %v, want %q", got, err, c.want)
			}
		}
	}
}
