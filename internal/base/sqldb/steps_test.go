package sqldb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/file/quota"
	"atelier/internal/money/report"
	"atelier/internal/notify/webhook"
)

// oldDatabase is a database as an earlier release left it.
type oldDatabase struct {
	*sqldb.DB
	t *testing.T
}

// eachOldDatabase runs a test on both database engines, each with the schema of
// the given version.
func eachOldDatabase(t *testing.T, version int64, test func(t *testing.T, db oldDatabase)) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := oldDatabase{DB: dbtest.Open(t, dbtest.Bare(t, engine)), t: t}
			if err := db.MigrateTo(t.Context(), version); err != nil {
				t.Fatal(err)
			}
			test(t, db)
		})
	}
}

// upgrade migrates the database to the schema of this release.
func (db oldDatabase) upgrade() {
	db.t.Helper()
	if _, err := db.Migrate(db.t.Context()); err != nil {
		db.t.Fatal(err)
	}
}

func (db oldDatabase) exec(query string, args ...any) error {
	ctx := db.t.Context()
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
}

func (db oldDatabase) mustExec(query string, args ...any) {
	db.t.Helper()
	if err := db.exec(query, args...); err != nil {
		db.t.Fatalf("%s: %v", query, err)
	}
}

// readTexts returns the first column of all rows.
func (db oldDatabase) readTexts(query string) (all []string) {
	db.t.Helper()
	ctx := db.t.Context()
	err := db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		all, err = sqldb.All(ctx, tx, query, nil, func(row sqldb.Scanner) (text string, err error) { return text, row.Scan(&text) })
		return err
	})
	if err != nil {
		db.t.Fatal(err)
	}
	return all
}

// TestGovernanceStep fills a database as the release before had it, and looks at
// what steps 8 and 9 make of that.
func TestGovernanceStep(t *testing.T) {
	eachOldDatabase(t, 7, func(t *testing.T, db oldDatabase) {
		ctx := t.Context()
		fillGovernance(db)
		const events = `SELECT id || ' ' || run_id || ' ' || account_id || ' ' || url || ' ' || host || ' ' || state || ' ' || CAST(attempts AS TEXT) || ' ' ||
				coalesce(CAST(next_at AS TEXT), '-') || ' ' || coalesce(CAST(lease_until AS TEXT), '-') || ' ' || CAST(created AS TEXT) FROM webhook_event ORDER BY id`
		const attempts = `SELECT id || ' ' || event_id || ' ' || CAST(at AS TEXT) || ' ' || coalesce(CAST(status_code AS TEXT), '-') || ' ' || CAST(duration_ms AS TEXT) || ' ' || error
				FROM webhook_attempt ORDER BY id`
		wasEvents := db.readTexts(events)
		wasAttempts := db.readTexts(attempts)
		if len(wasEvents) == 0 || len(wasAttempts) == 0 {
			t.Fatal("nothing to keep")
		}

		db.upgrade()
		if got := db.readTexts(events); !slices.Equal(got, wasEvents) {
			t.Errorf("events = %q, want %q", got, wasEvents)
		}
		if got := db.readTexts(attempts); !slices.Equal(got, wasAttempts) {
			t.Errorf("attempts = %q, want %q", got, wasAttempts)
		}
		const sums = `SELECT company_id || ' ' || grain || ' ' || CAST(slot AS TEXT) || ' ' || team_id || ' ' || person_id || ' ' || tool_id || ' ' || plugin || ' ' || credential || ' ' || credential_id
				|| ' ' || CAST(runs AS TEXT) || ' ' || CAST(succeeded AS TEXT) || ' ' || CAST(failed AS TEXT) || ' ' || CAST(cancelled AS TEXT) || ' ' || CAST(results AS TEXT)
				|| ' ' || CAST(tokens_charged AS TEXT) || ' ' || CAST(allowance_used AS TEXT) || ' ' || CAST(took_ms AS TEXT)
				FROM report_sum ORDER BY company_id, grain, slot, team_id, person_id, tool_id, plugin, credential, credential_id`
		counted := db.readTexts(sums)
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			for _, id := range []string{"c0", "c1", "c2"} {
				if err := report.Recount(ctx, tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if again := db.readTexts(sums); len(counted) < 100 || !slices.Equal(counted, again) {
			t.Errorf("%d sums after the step, %d counted anew, or others", len(counted), len(again))
		}
		if v, err := db.VerifyChecks(ctx, slices.Concat(report.Checks, webhook.Checks)); err != nil || len(v) > 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
		if err := db.exec(`INSERT INTO webhook_attempt (id, event_id, at, duration_ms, error) VALUES ('x', 'nothing', 1, 1, 'x')`); err == nil {
			t.Error("an attempt has no event")
		}
		if err := db.exec(`INSERT INTO webhook_event (id, run_id, account_id, url, host, state, attempts, created) VALUES ('x', 'nothing', 'a', 'u', 'h', 'gone', 1, 1)`); err == nil {
			t.Error("an event has no run")
		}
		if err := db.exec(`INSERT INTO webhook_event (id, account_id, url, host, state, attempts, created) VALUES ('x', 'a', 'u', 'h', 'gone', 1, 1)`); err == nil {
			t.Error("an event is about nothing")
		}
		db.mustExec(`INSERT INTO webhook_event (id, body, account_id, url, host, state, attempts, created) VALUES ('x', '{}', 'a', 'u', 'h', 'gone', 1, 1)`)
		db.mustExec(`UPDATE run SET metadata = '' WHERE id = 'r0'`)
		for _, change := range []string{`metadata = 'x'`, `company_id = 'c2'`, `tokens_charged = 0`, `status = 'pending'`} {
			if err := db.exec(`UPDATE run SET ` + change + ` WHERE id = 'r0'`); err == nil {
				t.Errorf("%s of a run that has ended", change)
			}
		}
	})
}

// TestStorageStep fills a database as the release before had it, and looks at
// what step 11 counts.
func TestStorageStep(t *testing.T) {
	eachOldDatabase(t, 7, func(t *testing.T, db oldDatabase) {
		ctx := t.Context()
		fillGovernance(db)
		if err := db.MigrateTo(ctx, 10); err != nil {
			t.Fatal(err)
		}
		db.mustExec(`UPDATE asset SET size_bytes = 1000`)
		db.mustExec(`UPDATE result SET deleted = 5 WHERE run_id IN ('r0', 'r3', 'r5')`)
		db.mustExec(`UPDATE asset SET gone = 6 WHERE id IN (SELECT asset_id FROM result WHERE run_id = 'r3')`)
		for _, u := range []struct{ id, deleted, gone string }{{"u0", "", ""}, {"u1", "7", ""}, {"u2", "7", "8"}} {
			db.mustExec(`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, blurhash, blob, thumb, preview, created, gone)
					VALUES ($1, 'p0', 'IMG', 'image/png', 10, '', '', $1, '', '', 1, CAST(nullif($2, '') AS BIGINT))`, u.id, u.gone)
			db.mustExec(`INSERT INTO upload (id, account_id, person_id, asset_id, name, created, deleted) VALUES ($1, 'p0', 'p0', $1, '', 1, CAST(nullif($2, '') AS BIGINT))`, u.id, u.deleted)
		}
		db.mustExec(`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, blurhash, blob, thumb, preview, created) VALUES ('sent', 'p9', 'IMG', 'image/png', 7, '', '', 'sent', '', '', 1)`)

		db.upgrade()
		if v, err := db.VerifyChecks(ctx, quota.Checks); err != nil || len(v) > 0 {
			t.Errorf("checks = %v, %v", v, err)
		}
		err := db.Read(ctx, func(tx *sqldb.Tx) error {
			all, err := quota.Limits{}.AccountUsages(ctx, tx, []string{"p9", "team0"})
			if err != nil {
				return err
			}
			if all["p9"].Used != 7 || all["p9"].Leaving != 0 || all["team0"].Used == 0 || all["team0"].Leaving != 1000 {
				t.Errorf("usage = %+v", all)
			}
			total, err := quota.TotalBytes(ctx, tx)
			if total <= 1007 {
				t.Errorf("total = %d", total)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// fillGovernance puts in companies, teams, and runs of every end with results,
// events and attempts.
func fillGovernance(db oldDatabase) {
	for i := range 3 {
		db.mustExec(`INSERT INTO company (id, name, plan, created) VALUES ($1, 'C', 'TEAM', 1)`, fmt.Sprint("c", i))
		db.mustExec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 1)`, fmt.Sprint("p", i))
		db.mustExec(`INSERT INTO tool_version (hash, definition) VALUES ($1, '{}')`, fmt.Sprint("h", i))
		db.mustExec(`INSERT INTO tool (id, slug, hash, definition, source, removed, created, updated) VALUES ($1, $1, $2, '{}', 'builtin', FALSE, 1, 1)`, fmt.Sprint("t", i), fmt.Sprint("h", i))
	}
	for i := range 4 { // the third company has none
		db.mustExec(`INSERT INTO team (id, company_id, name, removed, created) VALUES ($1, $2, 'T', FALSE, 1)`, fmt.Sprint("team", i), fmt.Sprint("c", i%2))
	}
	begin := time.Date(2026, 11, 13, 21, 7, 0, 0, time.UTC).UnixMicro()
	for i := range 60 {
		id := fmt.Sprint("r", i)
		team, account := fmt.Sprint("team", i%4), fmt.Sprint("team", i%4)
		person := fmt.Sprint("p", i%3)
		if i%7 == 6 {
			team, account = "", person
		}
		status := []string{"succeeded", "failed", "cancelled", "succeeded", "pending"}[i%5]
		created := begin + int64(i)*3_456_789_012
		var started, finished sqldb.Time
		if i%10 != 2 {
			started = sqldb.At(time.UnixMicro(created + 1_000_000))
		}
		charged, used, results := int64(0), int64(0), 0
		code, stage := "", ""
		switch status {
		case "succeeded":
			charged, used, results = int64(i), int64(i%3), 1+i%3
		case "failed":
			code = "ENGINE_FAILED"
		case "pending":
			stage = "queued"
		}
		if stage == "" {
			finished = sqldb.At(time.UnixMicro(created + 5_432_109))
		}
		url := ""
		if i%2 == 0 && stage == "" {
			url = "https://a.test/"
		}
		db.mustExec(`INSERT INTO run (id, library_id, person_id, account_id, team_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
				num_results, metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
				status, stage, attempt, worker, cancel, preview, revision, error_code, error_message, created, started, finished, note)
			VALUES ($1, $1, $2, $3, nullif($4, ''), 'device', $5, $6, $7, $8, 'image', '{}', '', 1, 4, 'old', $9, 2, 1, 100, 10, '2026-11',
				CASE WHEN $10 = '' THEN CAST($11 AS BIGINT) END, CASE WHEN $10 = '' THEN CAST($12 AS BIGINT) END, $13, nullif($10, ''), 1, '', FALSE, '', 1, $14, '', $15, $16, $17, '')`,
			id, person, account, team, fmt.Sprint("d", i%2), []string{"", "blender"}[i%2], fmt.Sprint("t", i%3), fmt.Sprint("h", i%3), url,
			stage, charged, used, status, code, created, started, finished)
		for n := range results {
			file := fmt.Sprint(id, "-", n)
			db.mustExec(`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, blurhash, blob, thumb, preview, created) VALUES ($1, $2, 'IMG', 'image/png', 1, '', '', $1, '', '', 1)`, file, account)
			db.mustExec(`INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created) VALUES ($1, $2, $3, $1, $4, $5, 'IMG', '', '', 1)`,
				file, id, int64(n), account, fmt.Sprint("t", i%3))
		}
		if url == "" {
			continue
		}
		if i%4 == 0 {
			db.mustExec(`INSERT INTO webhook_event (id, run_id, account_id, url, host, state, attempts, next_at, lease_until, created) VALUES ($1, $2, $3, $4, 'a.test', 'waiting', 1, 7, 9, 1)`, "e"+id, id, account, url)
			db.mustExec(`INSERT INTO webhook_attempt (id, event_id, at, duration_ms, error) VALUES ($1, $2, 5, 6, 'timeout')`, "a"+id, "e"+id)
		} else {
			db.mustExec(`INSERT INTO webhook_event (id, run_id, account_id, url, host, state, attempts, created) VALUES ($1, $2, $3, $4, 'a.test', 'delivered', 1, 1)`, "e"+id, id, account, url)
			db.mustExec(`INSERT INTO webhook_attempt (id, event_id, at, status_code, duration_ms, error) VALUES ($1, $2, 5, 200, 6, '')`, "a"+id, "e"+id)
		}
	}
}

// TestRateSubjectStep migrates keys that a release without subjects wrote.
func TestRateSubjectStep(t *testing.T) {
	old := map[string]string{
		"day/password/pair/fox@example.com/203.0.113.0/24": "fox@example.com",
		"password/person/fox@example.com":                  "fox@example.com",
		"day/reset/person/fox@example.com":                 "fox@example.com",
		"invitation/email/c1/fox@example.com":              "fox@example.com",
		"invitation/person/p1":                             "p1",
		"day/code/person/p1":                               "p1",
		"create/person/p1":                                 "p1",
		"password/address/203.0.113.0/24":                  "",
		"day/zone/company/c1":                              "",
	}
	eachOldDatabase(t, 18, func(t *testing.T, db oldDatabase) {
		ctx := t.Context()
		for key := range old {
			db.mustExec(`INSERT INTO rate_key (key, last) VALUES ($1, 1)`, key)
		}

		db.upgrade()
		for key, want := range old {
			got, err := sqldb.One[string](ctx, db, `SELECT subject FROM rate_key WHERE key = $1`, key)
			if err != nil || got != want {
				t.Errorf("subject of %s = %q, %v, want %q", key, got, err, want)
			}
		}
	})
}

// TestLedgerHistoryStep migrates entries that a release without times of
// entries wrote.
func TestLedgerHistoryStep(t *testing.T) {
	eachOldDatabase(t, 21, func(t *testing.T, db oldDatabase) {
		ctx := t.Context()
		db.mustExec(`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('a', 7, 0, '', 0), ('system:grants', -7, 0, '', 0)`)
		db.mustExec(`INSERT INTO ledger_transaction (id, kind, note, created, seal) VALUES ('t1', 'grant', '', 1001, ''), ('t2', 'grant', '', 1002, '')`)
		db.mustExec(`INSERT INTO ledger_entry (transaction_id, account_id, amount) VALUES ('t1', 'a', 3), ('t1', 'system:grants', -3), ('t2', 'a', 4), ('t2', 'system:grants', -4)`)

		db.upgrade()
		for id, want := range map[string]int64{"t1": 1001, "t2": 1002} {
			got, err := sqldb.One[int64](ctx, db, `SELECT created FROM ledger_entry WHERE transaction_id = $1 AND account_id = 'a'`, id)
			if err != nil || got != want {
				t.Errorf("time of the entry of %s = %d, %v, want %d", id, got, err, want)
			}
		}
		sums := func() string {
			all, err := sqldb.One[string](ctx, db, `SELECT CAST(day AS TEXT) || ' ' || CAST(received AS TEXT) || ' ' || CAST(spent AS TEXT) || ' ' || CAST(entries AS TEXT) FROM ledger_day`)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if got := sums(); got != "0 7 0 2" {
			t.Errorf("sums by day = %s, want those of the account", got)
		}
		db.mustExec(`INSERT INTO ledger_transaction (id, kind, note, created, seal) VALUES ('t3', 'grant', '', 1003, '')`)
		db.mustExec(`INSERT INTO ledger_entry (transaction_id, account_id, amount, created) VALUES ('t3', 'a', -2, 1003), ('t3', 'system:grants', 2, 1003)`)
		if got := sums(); got != "0 7 2 3" {
			t.Errorf("sums by day after another entry = %s", got)
		}
		if err := db.exec(`UPDATE ledger_entry SET amount = 5`); err == nil {
			t.Error("after the step, entries can be changed")
		}
	})
}

// TestPoolsStep has people wait in a database of the release before step 27.
// They keep their turns.
func TestPoolsStep(t *testing.T) {
	eachOldDatabase(t, 26, func(t *testing.T, db oldDatabase) {
		for _, name := range []string{"anna", "bert", "carl", "dora"} {
			db.mustExec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 1)`, name)
		}
		db.mustExec(`INSERT INTO run_turn (engine, person_id, served, waiting) VALUES ('image', 'anna', 30, 2), ('image', 'bert', 10, 1), ('image', 'carl', 0, 1), ('image', 'dora', 20, 0)`)
		db.upgrade()
		got := db.readTexts(`SELECT person_id FROM run_turn WHERE engine = 'image' AND waiting > 0 ORDER BY since - head_start, person_id`)
		if want := []string{"carl", "bert", "anna"}; !slices.Equal(got, want) {
			t.Errorf("the next people are %v, want %v", got, want)
		}
	})
}
