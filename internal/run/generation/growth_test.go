package generation_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/money/ledger"
	"atelier/internal/money/report"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// history adds 4,000 old runs of a team, a minute apart, each with an attempt, a
// settlement, a result and an audit entry. Every five hundredth result is a 2K
// picture in an unusual format, and a favorite; every thousandth run has a
// delivered event and a deleted result, and one run failed.
var history = []string{
	`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ('p', 'p@example.com', 'p@example.com', TRUE, '', 1)`,
	`INSERT INTO company (id, name, plan, created) VALUES ('c', 'Company', 'ENTERPRISE', 1)`,
	`INSERT INTO report_zone (company_id, zone) VALUES ('c', 'UTC')`,
	`INSERT INTO team (id, company_id, name, removed, created) VALUES ('t', 'c', 'Team', FALSE, 1)`,
	`INSERT INTO tool_version (hash, definition) VALUES ('h', '{}')`,
	`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('tool', 'tool', 'builtin', '{}', 'h', FALSE, 1, 1), ('raretoolraretoolrare', 'rare', 'builtin', '{}', 'h', FALSE, 1, 1)`,
	`INSERT INTO run (id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
		num_results, metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
		status, attempt, worker, cancel, preview, revision, error_code, error_message, created, started, finished, results)
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
	SELECT 'r' || i, 'l' || i, 'p', 't', 't', 'c', 'token', '', '', CASE i % 500 WHEN 7 THEN 'raretoolraretoolrare' ELSE 'tool' END, 'h', 'script', '{}', 'a fox', i,
		1, '', '', 2, 1, 1, 0, '', CASE i % 500 WHEN 9 THEN 1 ELSE 0 END, 0,
		CASE WHEN i = 77 THEN 'failed' ELSE 'succeeded' END, 1, 'w', FALSE, '', 1, CASE WHEN i = 77 THEN 'INTERNAL' ELSE '' END, '',
		i * CAST(60000000 AS BIGINT), i * CAST(60000000 AS BIGINT) + 1, i * CAST(60000000 AS BIGINT) + 2, 1 FROM n`,
	`INSERT INTO run_attempt (run_id, attempt, worker, started, ended, outcome) SELECT id, 1, 'w', started, finished, status FROM run`,
	`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created, released)
	SELECT 'a' || seed, 't', 'IMG', 'image/png', 1, '', 1, 1, '', 'b' || seed, '', '', finished, CASE seed % 1000 WHEN 3 THEN finished END FROM run`,
	`INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created, search_text, deleted)
	SELECT 's' || seed, id, 0, 'a' || seed, 't', tool_id, 'IMG', CASE seed % 500 WHEN 7 THEN '21:9' ELSE '1:1' END, CASE seed % 500 WHEN 7 THEN '2K' ELSE '1K' END, finished, 'a fox',
		CASE seed % 1000 WHEN 3 THEN finished END FROM run`,
	`INSERT INTO run_input (run_id, field, place, asset_id, swept) SELECT id, 'picture', 0, 'a' || seed, TRUE FROM run`,
	`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('t', 0, 0, '', 0), ('system:revenue', 0, 0, '', 0)`,
	`INSERT INTO ledger_transaction (id, kind, note, created, run_id) SELECT 'x' || seed, 'settle', '', finished, id FROM run`,
	`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) SELECT 'x' || seed, 't', -tokens_charged, finished FROM run`,
	`INSERT INTO webhook_event (id, run_id, account_id, url, host, state, attempts, created)
	SELECT 'e' || seed, id, 't', 'https://example.com/', 'example.com', CASE seed % 1000 WHEN 3 THEN 'gone' ELSE 'delivered' END, 1, finished FROM run`,
	`INSERT INTO idempotency (person_id, key, fingerprint, run_id, response, created) SELECT 'p', 'k' || seed, '', id, '', finished FROM run`,
	`INSERT INTO audit (seq, at, act, actor_id, person_id, company_id, address, details, hash)
	SELECT seed, finished, CASE seed % 500 WHEN 7 THEN 'rare' ELSE 'usual' END, 'other', CASE seed % 500 WHEN 7 THEN 'p' ELSE 'q' END, 'c', '', '{}', '' FROM run`,
	`UPDATE audit_head SET seq = 4000`,
	`ANALYZE`,
}

// ancient is longer than the age of the old runs: nothing is due.
const ancient = 100 * 365 * 24 * time.Hour

// rowSlack is how many more rows than its page a call may read.
const rowSlack = 250

// TestCallsReadOnlyTheirRows holds that the cost of a call does not grow with
// the number of old rows: no statement reads a whole table, and on PostgreSQL,
// which counts rows, none reads many more rows than a page has.
func TestCallsReadOnlyTheirRows(t *testing.T) {
	dbtest.EachFixture(t, nil, func(w dbtest.Fixture) {
		for _, statement := range history {
			w.Exec(statement)
		}
		w.Do(func(tx *sqldb.Tx) error { return report.Recount(w.Context(), tx, "c") })
		w.Exec(`ANALYZE`)

		type traced struct {
			query string
			args  []any
		}
		var read []traced
		db, err := sqldb.Open(w.Context(), w.URL, sqldb.Options{
			MaxConns: 4,
			Now:      w.Now,
			Limit:    time.Minute,
			Trace:    func(query string, args []any) { read = append(read, traced{query, slices.Clone(args)}) },
		})
		w.OK(err)
		defer db.Close()

		files, err := blob.Open(w.Context(), "file://"+t.TempDir(), blob.Options{Now: time.Now})
		w.OK(err)
		defer files.Close()
		lib := &library.Library{DB: db, Blobs: files}
		who := principal.Principal{PersonID: "p", AccountID: "t", TeamID: "t"}
		minute := func(n int64) time.Time { return time.UnixMicro(n * 60_000_000).UTC() }
		list := func(f library.Filter) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := lib.ListItems(ctx, who, f, nil, 20)
				return err
			}
		}
		inTx := func(do func(ctx context.Context, tx *sqldb.Tx) error) func(context.Context) error {
			return func(ctx context.Context) error { return db.Read(ctx, func(tx *sqldb.Tx) error { return do(ctx, tx) }) }
		}
		audits := func(f audit.Filter) func(context.Context) error {
			f.Limit = 20
			return inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := audit.List(ctx, tx, f)
				return err
			})
		}
		runs := func(f run.Filter, after *run.Cursor) func(context.Context) error {
			return inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := run.List(ctx, tx, "t", f, after, 20)
				return err
			})
		}
		for name, call := range map[string]func(context.Context) error{
			"library":               list(library.Filter{}),
			"library by type":       list(library.Filter{Type: "VID"}),
			"library by tool":       list(library.Filter{ToolIDs: []string{"raretoolraretoolrare"}}),
			"library by ratio":      list(library.Filter{AspectRatio: "21:9"}),
			"library by resolution": list(library.Filter{Resolution: "2K"}),
			"library by time":       list(library.Filter{From: minute(100), Until: minute(110)}),
			"uploads": func(ctx context.Context) error {
				_, err := lib.ListUploads(ctx, who, "t", "", nil, 20)
				return err
			},
			"runs":               runs(run.Filter{}, nil),
			"runs in the middle": runs(run.Filter{}, &run.Cursor{Created: minute(2000), ID: "r2000"}),
			"runs by status":     runs(run.Filter{Status: "failed"}, nil),
			"runs by tool":       runs(run.Filter{ToolID: "raretoolraretoolrare"}, nil),
			"idempotency key": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := run.FindKey(ctx, tx, "p", "k7", time.Hour)
				return err
			}),
			"active runs": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := run.CountActive(ctx, tx, "p")
				return err
			}),
			"ended runs": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := run.EndedRevisions(ctx, tx, []string{"t"}, minute(3990), 20)
				return err
			}),
			"pending runs": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := run.PendingRevisions(ctx, tx, []string{"t"})
				return err
			}),
			"remote work": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := run.ListRemoteWork(ctx, tx, "script", 20)
				return err
			}),
			"spent by a person": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := run.Spent(ctx, tx, "t", "p", minute(3990))
				return err
			}),
			"history of an account": func(ctx context.Context) error {
				_, err := (&ledger.History{DB: db}).ListEntries(ctx, "t", ledger.Period{}, nil, 20)
				return err
			},
			"audit of a company": audits(audit.Filter{CompanyID: "c"}),
			"audit of a person":  audits(audit.Filter{PersonID: "p"}),
			"audit by acts":      audits(audit.Filter{Acts: []audit.Act{"rare", "never"}}),
			"report by day": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := report.Usage(ctx, tx, report.Query{CompanyID: "c", From: minute(0), Until: minute(4000)}, []report.Dimension{report.Day}, nil, 20)
				return err
			}),
			"report by team": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := report.Usage(ctx, tx, report.Query{CompanyID: "c", From: minute(0), Until: minute(1440)}, []report.Dimension{report.Team}, nil, 20)
				return err
			}),
			"report of runs": inTx(func(ctx context.Context, tx *sqldb.Tx) error {
				_, err := report.Runs(ctx, tx, report.Query{CompanyID: "c", From: minute(0), Until: minute(4000)}, nil, 20)
				return err
			}),
			"sweep of keys":  func(ctx context.Context) error { return run.DeleteExpired(ctx, db, ancient) },
			"sweep of files": lib.SweepFiles,
			"retention of runs": func(ctx context.Context) error {
				return generation.Prune(ctx, db, generation.Retention{Runs: ancient, Events: ancient})
			},
			"deliveries": func(ctx context.Context) error {
				_, err := webhook.ListDeliveries(ctx, db, "t", "gone", nil, 20)
				return err
			},
		} {
			read = nil
			w.OK(call(w.Context()))
			statements := slices.Clone(read)
			if len(statements) == 0 {
				w.Errorf("%s: no statement was traced", name)
			}
			for _, s := range statements {
				if verb := strings.ToUpper(strings.Fields(s.query)[0]); verb == "INSERT" {
					continue
				}
				plan := w.Explain("(ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)", s.query, s.args)
				if problem := findLargeRead(plan); problem != "" {
					w.Errorf("%s %s:\n%s\n%s", name, problem, s.query, strings.Join(plan, "\n"))
				}
			}
		}
	})
}

var (
	largeName   = `(run|run_attempt|run_input|result|asset|upload|ledger_transaction|ledger_entry|audit|webhook_event|webhook_attempt|idempotency)`
	liteScan    = regexp.MustCompile(`^SCAN ` + largeName + `$|^SCAN (r|n|a|u|e|i|t)$`)
	readRows    = regexp.MustCompile(`actual rows=([0-9.]+) loops=([0-9]+)`)
	removedRows = regexp.MustCompile(`Rows Removed by (?:Filter|Join Filter|Index Recheck): ([0-9]+)`)
)

// findLargeRead returns what is wrong with a plan that reads more than a page.
func findLargeRead(plan []string) string {
	for _, line := range plan {
		if liteScan.MatchString(strings.TrimSpace(line)) {
			return "reads a whole table"
		}
		if m := readRows.FindStringSubmatch(line); m != nil {
			rows, _ := strconv.ParseFloat(m[1], 64)
			loops, _ := strconv.ParseFloat(m[2], 64)
			if rows*loops > rowSlack {
				return "reads too many rows"
			}
		}
		if m := removedRows.FindStringSubmatch(line); m != nil {
			if n, _ := strconv.Atoi(m[1]); n > rowSlack {
				return "reads too many rows and skips them"
			}
		}
	}
	return ""
}
