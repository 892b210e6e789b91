package run

import (
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestQueuesAreReadByIndex holds that looking at queues never reads all runs:
// with many that have ended, no plan goes through the tables.
func TestQueuesAreReadByIndex(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		numbers := `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) `
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			for _, query := range []string{
				`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('tool', 'tool', 'builtin', '{}', 'hash', FALSE, 0, 0)`,
				`INSERT INTO tool_version (hash, definition) VALUES ('hash', '{}')`,
				numbers + `INSERT INTO person (id, email, email_key, email_verified, password_hash, created)
					SELECT 'p' || i, 'p' || i, 'p' || i, TRUE, '', 0 FROM n`,
				numbers + `INSERT INTO run_turn (engine, person_id, served, waiting) SELECT 'image', 'p' || i, i, 0 FROM n`,
				numbers + `INSERT INTO run (id, library_id, person_id, account_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt,
						seed, num_results, metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
						status, attempt, worker, cancel, preview, revision, error_code, error_message, created, finished)
					SELECT 'r' || i, 'r' || i, 'p' || i, 'p' || i, 'token', '', '', 'tool', 'hash', 'image', '{}', '', 1, 1, '', '', 2, 0, 0, 0, '', 0, 0,
						'succeeded', 1, '', FALSE, '', 1, '', '', i, i FROM n`,
				`ANALYZE`,
			} {
				if _, err := tx.Exec(t.Context(), query); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		explain := "EXPLAIN QUERY PLAN "
		if db.Dialect.Name == "postgres" {
			explain = "EXPLAIN "
		}
		for query, args := range map[string][]any{
			waitingEnginesQuery: {int64(queueEngines)},
			countWaitingQuery:   {"image", int64(countedPeople)},
			oldestWaitingQuery:  {"image", int64(oldestPeople)},
			countActiveQuery:    {int64(countedActive)},
			hasWaitingQuery:     {"image"},
			nextPersonQuery:     {"image"},
			nextRunQuery:        {"image", "p7"},
			estimatesQuery:      {"image", int64(maxSample)},
			lockEngineQuery:     {"image"},
			countRunningQuery:   {"image", int64(4)},
			listWorkQuery:       {"queued", int64(0), "", int64(100)},
			sampleQuery:         {"image", int64(maxSample)},
			`SELECT ` + countRunsQuery + ` FROM (VALUES (CAST($2 AS TEXT))) AS w`:                         {int64(maxCounted), "p7"},
			`SELECT ` + countCompanies + `, ` + newestFinished + ` FROM (VALUES (CAST($2 AS TEXT))) AS w`: {int64(maxCounted), "c"},
		} {
			var plan []string
			err := db.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
				plan, err = explained(tx, t, explain+query, args)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range plan {
				whole := strings.Contains(line, "Seq Scan on run") || strings.Contains(line, "SCAN") && strings.Contains(line, "run") && !strings.Contains(line, "INDEX")
				if whole {
					t.Errorf("%s\ngoes through a table:\n%s", query, strings.Join(plan, "\n"))
				}
			}
		}
	})
}

// TestClaimsDoNotSortTheQueue holds that the cost of finding the next person
// does not grow with the number of people who wait.
func TestClaimsDoNotSortTheQueue(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		numbers := `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) `
		var plan []string
		err := db.Write(t.Context(), func(tx *sqldb.Tx) (err error) {
			for _, query := range []string{
				numbers + `INSERT INTO person (id, email, email_key, email_verified, password_hash, created)
					SELECT 'p' || i, 'p' || i, 'p' || i, TRUE, '', 0 FROM n`,
				numbers + `INSERT INTO run_turn (engine, person_id, served, waiting, since, head_start) SELECT 'image', 'p' || i, i, 1, 10 * i, i % 7 FROM n`,
				`ANALYZE`,
			} {
				if _, err := tx.Exec(t.Context(), query); err != nil {
					return err
				}
			}
			explain := "EXPLAIN QUERY PLAN "
			if db.Dialect.Name == "postgres" {
				explain = "EXPLAIN "
			}
			plan, err = explained(tx, t, explain+nextPersonQuery, []any{"image"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if !strings.Contains(text, "run_turn_order") || strings.Contains(text, "Sort") || strings.Contains(text, "TEMP B-TREE") {
			t.Errorf("the next person is not read from the index:\n%s", text)
		}
	})
}

// explained gives the lines of a plan.
func explained(tx *sqldb.Tx, t *testing.T, query string, args []any) (lines []string, err error) {
	err = tx.EachRow(t.Context(), query, args, func(row sqldb.Scanner) error {
		var id, parent, unused int64
		var line string
		if tx.Dialect.Name == "postgres" {
			err := row.Scan(&line)
			lines = append(lines, line)
			return err
		}
		err := row.Scan(&id, &parent, &unused, &line)
		lines = append(lines, line)
		return err
	})
	return lines, err
}
