package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
	"atelier/internal/file/library"
	"atelier/internal/money/ledger"
	"atelier/internal/money/report"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// growthLimit is the ratio up to which a call counts as independent of the
// number of old rows.
const growthLimit = 1.25

// growth measures calls of the services with few and with many old runs, and
// the start of the program. Half of the runs belong to one team, whose lists are
// read.
func (b *bench) growth(ctx context.Context) error {
	var sizes []int
	for _, text := range strings.Split(b.rows, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 100 {
			return fmt.Errorf("-rows: %q is not a number of at least 100", text)
		}
		sizes = append(sizes, n)
	}
	databases := strings.Split(b.on, ",")
	for _, name := range databases {
		if name != "sqlite" && name != "postgres" {
			return fmt.Errorf("-on: there is no database %q, only sqlite and postgres", name)
		}
	}
	if slices.Contains(databases, "sqlite") {
		if err := b.growthOn(ctx, "SQLite", sizes, func() (string, error) { return "", nil }); err != nil {
			return err
		}
	}
	if !slices.Contains(databases, "postgres") {
		return nil
	}
	pg, err := b.startPostgres()
	if err != nil || pg == nil {
		return err
	}
	return b.growthOn(ctx, "PostgreSQL with fsync", sizes, func() (string, error) { return pg.createDatabase(ctx) })
}

func (b *bench) growthOn(ctx context.Context, where string, sizes []int, database func() (string, error)) error {
	var all []*grown
	defer func() {
		for _, g := range all {
			g.close()
		}
	}()
	for _, size := range sizes {
		address, err := database()
		if err != nil {
			return err
		}
		g, err := b.prepareGrowth(ctx, fmt.Sprintf("growth-%s-%d", strings.Fields(where)[0], size), address, size)
		if err != nil {
			return err
		}
		all = append(all, g)
	}

	fmt.Printf("the same calls with %s old runs (%s), taking turns: the shortest of %d calls each, in milliseconds, and the ratio of the last to the first\n",
		strings.ReplaceAll(b.rows, ",", ", "), where, growthRounds*b.rounds)
	for i, c := range all[0].calls {
		rounds := growthRounds * b.rounds
		if c.isSlow {
			rounds = 3
		}
		least, err := leastOfCalls(all, i, rounds)
		if err != nil { // filling took long: the other calls are still measured
			fmt.Printf("  %-36s%v\n", c.name, err)
			b.missed = append(b.missed, fmt.Sprintf("%s (%s): %v", c.name, where, err))
			continue
		}
		b.printGrowth(where, c.name, least)
	}
	fmt.Println()
	return nil
}

// leastOfCalls measures one call in each installation, in turns, and returns the
// shortest time of each. Slow calls are repeated less often.
func leastOfCalls(all []*grown, i, rounds int) ([]time.Duration, error) {
	least := make([]time.Duration, len(all))
	began := time.Now()
	for round := range rounds {
		if round >= 3 && time.Since(began) > time.Minute {
			break
		}
		for k, g := range all {
			took, err := g.calls[i].measure()
			if err != nil {
				return nil, err
			}
			if round == 0 || took < least[k] {
				least[k] = took
			}
		}
	}
	return least, nil
}

// growthRounds is how many calls are made for each round of the command: they
// are short, and only the shortest counts.
const growthRounds = 10

// printGrowth prints the times of a call for each number of old runs.
func (b *bench) printGrowth(where, name string, least []time.Duration) {
	line := fmt.Sprintf("  %-36s", name)
	for _, took := range least {
		line += fmt.Sprintf("%12.3f", float64(took.Microseconds())/1000)
	}
	ratio := float64(least[len(least)-1]) / float64(least[0])
	line += fmt.Sprintf("%10.2f", ratio)
	if ratio > growthLimit {
		line += "  grows"
		b.missed = append(b.missed, fmt.Sprintf("%s (%s) costs %.2f times as much, want %.2f", name, where, ratio, growthLimit))
	}
	fmt.Println(line)
}

// grown is an installation with old runs, and the calls to measure there.
type grown struct {
	calls []growthCall
	close func()
}

// growthCall is a call of a service.
type growthCall struct {
	name   string
	do     func() error
	after  func() // is not measured
	isSlow bool
}

// measure returns how long one call takes.
func (c growthCall) measure() (time.Duration, error) {
	began := time.Now()
	err := c.do()
	took := time.Since(began)
	if c.after != nil {
		c.after()
	}
	return took, err
}

// prepareGrowth fills an installation with old runs. Its program is stopped.
func (b *bench) prepareGrowth(ctx context.Context, name, database string, size int) (*grown, error) {
	s, err := b.serve(ctx, name, settings{tools: map[string]string{"tags.yaml": tags, "sketch.yaml": sketch}, database: database, roles: "api"})
	if err != nil {
		return nil, err
	}
	people, err := gather(ctx, s, 64)
	if err != nil {
		return nil, err
	}
	j, err := s.job(people[0].token, "Sketch", words)
	if err != nil {
		return nil, err
	}
	if err := greet(s.creates(people[:1], j)); err != nil { // from then on its version is known, and a run is queued
		return nil, err
	}
	s.stop()
	f, err := found(ctx, s, people[0])
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := f.fillGrowth(ctx, s, people, j, size); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	fmt.Printf("%d old runs in %v\n", size, time.Since(began).Round(time.Second))

	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 4, Now: time.Now})
	if err != nil {
		return nil, err
	}
	files, err := blob.Open(ctx, "file://"+s.dir+"/growth", blob.Options{Now: time.Now})
	if err != nil {
		return nil, err
	}
	calls := listCalls(sqldb.WithLimit(ctx, time.Hour), db, files, f, people[0], j)
	calls = append(calls, growthCall{name: "start of the program", do: func() error { return s.start(ctx) }, after: s.stop, isSlow: true})
	return &grown{calls: calls, close: func() {
		files.Close()
		db.Close()
		os.RemoveAll(s.dir)
	}}, nil
}

// errUndo undoes a transaction that is only measured.
var errUndo = errors.New("undo")

// listCalls returns the calls of the services that growth measures.
func listCalls(ctx context.Context, db *sqldb.DB, files blob.Store, f firm, reader member, j job) (all []growthCall) {
	team := f.teams[0]
	lib := &library.Library{DB: db, Blobs: files}
	who := principal.Principal{PersonID: reader.id, AccountID: team, TeamID: team}
	now := time.Now()
	yes := true
	list := func(filter library.Filter) func() error {
		return func() error {
			_, err := lib.ListItems(ctx, who, filter, nil, 20)
			return err
		}
	}
	// Pages of lists and reports are read as their services read them.
	readIn := func(ctx context.Context, do func(tx *sqldb.Tx) error) func() error {
		return func() error { return db.Read(ctx, do) }
	}
	inTx := func(do func(tx *sqldb.Tx) error) func() error { return readIn(ctx, do) }
	ordered := sqldb.WithIndexOrder(ctx)
	runs := func(filter run.Filter) func() error {
		return readIn(ordered, func(tx *sqldb.Tx) error {
			_, err := run.List(ctx, tx, team, filter, nil, 20)
			return err
		})
	}
	audits := func(filter audit.Filter) func() error {
		filter.Limit = 20
		return readIn(ordered, func(tx *sqldb.Tx) error {
			_, err := audit.List(ctx, tx, filter)
			return err
		})
	}
	until := now.Truncate(24 * time.Hour).Add(-30 * 24 * time.Hour)
	month := report.Query{CompanyID: f.id, From: until.Add(-30 * 24 * time.Hour), Until: until}
	noons := report.Query{CompanyID: f.id, From: month.From.Add(12 * time.Hour), Until: until.Add(12 * time.Hour)}
	usage := func(period report.Query, by report.Dimension) func() error {
		return readIn(sqldb.WithReusedPlans(ctx), func(tx *sqldb.Tx) error {
			_, err := report.Usage(ctx, tx, period, []report.Dimension{by}, nil, 20)
			return err
		})
	}
	history := &ledger.History{DB: db}

	for _, c := range []struct {
		name string
		call func() error
	}{
		{"library, first page", list(library.Filter{})},
		{"library by type", list(library.Filter{Type: "IMG"})},
		{"library by a type without results", list(library.Filter{Type: "VID"})},
		{"library by tool", list(library.Filter{ToolIDs: []string{j.toolID}})},
		{"library by a rare aspect ratio", list(library.Filter{AspectRatio: "16:9"})},
		{"library by a rare resolution", list(library.Filter{Resolution: "4K+"})},
		{"library, favorites", list(library.Filter{Favorited: &yes})},
		{"library of 100 days", list(library.Filter{From: now.Add(-250 * 24 * time.Hour), Until: now.Add(-150 * 24 * time.Hour)})},
		{"library, a common word", list(library.Filter{Search: "fox"})},
		{"library, a rare word", list(library.Filter{Search: "zeppelin"})},
		{"library, a word that occurs nowhere", list(library.Filter{Search: "submarine"})},
		{"library, count and scroll marks", func() error {
			_, _, err := lib.ListMarks(ctx, who, library.Filter{}, 100)
			return err
		}},
		{"uploads", func() error {
			_, err := lib.ListUploads(ctx, who, team, "", nil, 20)
			return err
		}},
		{"runs, first page", runs(run.Filter{})},
		{"runs by status", runs(run.Filter{Status: "failed"})},
		{"runs by tool", runs(run.Filter{ToolID: j.toolID})},
		{"idempotency key", inTx(func(tx *sqldb.Tx) error {
			_, err := run.FindKey(ctx, tx, reader.id, "growth-7", time.Hour)
			return err
		})},
		{"claim of a queued run", func() error {
			err := db.Write(ctx, func(tx *sqldb.Tx) error {
				_, _, ok, err := run.Claim(ctx, tx, run.ClaimOptions{Engine: "image", Worker: "bench", Lease: time.Minute})
				if err == nil && !ok {
					err = errors.New("no run was claimed")
				}
				return errors.Join(err, errUndo)
			})
			if errors.Is(err, errUndo) && err.Error() == errUndo.Error() {
				return nil
			}
			return err
		}},
		{"ledger, first page", func() error {
			_, err := history.ListEntries(ctx, team, ledger.Period{}, nil, 20)
			return err
		}},
		{"ledger, 30 days", func() error {
			_, err := history.ListDays(ctx, team, ledger.Period{From: now.Add(-30 * 24 * time.Hour).Truncate(24 * time.Hour), Until: now.Truncate(24 * time.Hour)})
			return err
		}},
		{"audit log of a company", audits(audit.Filter{CompanyID: f.id})},
		{"audit log of a person", audits(audit.Filter{PersonID: reader.id})},
		{"audit log by a rare act", audits(audit.Filter{Acts: []audit.Act{"bench.rare"}})},
		{"report of 30 days by day", usage(month, report.Day)},
		{"report of 30 days by team", usage(month, report.Team)},
		{"report of 30 days by person", usage(month, report.Person)},
		{"report from noon to noon by day", usage(noons, report.Day)},
		{"report from noon to noon by team", usage(noons, report.Team)},
		{"report of runs", readIn(sqldb.WithReusedPlans(ctx), func(tx *sqldb.Tx) error {
			_, err := report.Runs(ctx, tx, month, nil, 20)
			return err
		})},
		{"sweep of files, nothing to do", func() error { return lib.SweepFiles(ctx) }},
		{"retention of runs, nothing to do", func() error {
			return generation.Prune(ctx, db, generation.Retention{Runs: 10 * 365 * 24 * time.Hour, Events: 10 * 365 * 24 * time.Hour})
		}},
		{"sweep of idempotency keys", func() error { return run.DeleteExpired(ctx, db, 10*365*24*time.Hour) }},
	} {
		all = append(all, growthCall{name: c.name, do: c.call})
	}
	return all
}

// fillGrowth adds old runs in bulk: half of them of the first team of the
// company, the others of the people's own accounts.
func (f firm) fillGrowth(ctx context.Context, s *server, people []member, j job, size int) error {
	err := inBulk(ctx, s, func(db *store) []string {
		statements := listPeople(people)
		first := time.Now().Add(-365 * 24 * time.Hour).UnixMicro()
		step := (364 * 24 * time.Hour).Microseconds() / int64(size)
		for _, text := range growthRows {
			statements = append(statements, strings.NewReplacer(
				"{old}", fmt.Sprint(size), "{people}", fmt.Sprint(len(people)), "{first}", fmt.Sprint(first), "{step}", fmt.Sprint(step), "{team}", f.teams[0], "{company}", f.id,
				"{reader}", people[0].id, "{id}", db.newID, "{tool}", j.toolID, "{hash}", j.hash, "{inputs}", j.inputs, "{sha256}", ids.Hash("bench")).Replace(text))
		}
		return append(statements, `DROP TABLE bench_person`)
	})
	if err != nil {
		return err
	}
	ctx = sqldb.WithLimit(ctx, time.Hour)
	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Write(ctx, func(tx *sqldb.Tx) error { return report.Recount(ctx, tx, f.id) }); err != nil {
		return err
	}
	if db.Pool() != nil { // the server would do it by itself within a minute
		if _, err := db.Pool().Exec(ctx, `ANALYZE report_sum, report_flow`); err != nil {
			return err
		}
	}
	return db.MaintainFiles(ctx)
}

// growthRows fill the tables, on both databases alike. Every fourth run
// succeeded with a result. Of the rare things (aspect ratio, resolution,
// word, favorite, act in the audit log) there are always ten.
var growthRows = []string{
	`INSERT INTO run (id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
		num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
		status, attempt, worker, cancel, preview, revision, error_code, error_message, created, started, finished, results)
	WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {old})
	SELECT '00000000-0000-7000-8000-' || substr(CAST(1000000000000 + n.i AS TEXT), 2), {id}, p.id, CASE n.i % 2 WHEN 0 THEN '{team}' ELSE p.id END,
		CASE n.i % 2 WHEN 0 THEN '{team}' END, CASE n.i % 2 WHEN 0 THEN '{company}' END, 'personal_token', 'bench', '', '{tool}', '{hash}', 'image',
		'{inputs}', CASE WHEN n.i < 80 THEN 'a red fox in a zeppelin' ELSE 'a red fox in the snow' END, n.i, 1, '', '', 2, 2, 1, 1, 0, '', CASE WHEN n.i % 8 < 2 THEN 1 ELSE 0 END, 0,
		CASE WHEN n.i % 8 < 2 THEN 'succeeded' ELSE 'cancelled' END, 1, 'bench', FALSE, '', 4, '', '', {first} + n.i * {step}, {first} + n.i * {step} + 100000, {first} + n.i * {step} + 2000000,
		CASE WHEN n.i % 8 < 2 THEN 1 ELSE 0 END
	FROM n JOIN bench_person p ON p.i = n.i / 2 % {people}`,

	`INSERT INTO run_attempt (run_id, attempt, worker, started, ended, outcome)
	SELECT id, 1, 'bench', started, finished, status FROM run WHERE worker = 'bench'`,

	`INSERT INTO ledger_transaction (id, kind, note, created, run_id)
	SELECT {id}, 'settle', '', finished, id FROM run WHERE worker = 'bench'`,

	`INSERT INTO ledger_account (id, posted, held, allowance_month, allowance_used) VALUES ('{team}', 0, 0, '', 0)`,

	`INSERT INTO ledger_entry (transaction_id, account_id, amount, created)
	SELECT t.id, r.account_id, -r.tokens_charged, t.created FROM ledger_transaction t JOIN run r ON r.id = t.run_id WHERE t.kind = 'settle'`,

	// Where triggers are off, nothing else adds the sums by day.
	`INSERT INTO ledger_day (account_id, day, received, spent, entries)
	SELECT account_id, created / 86400000000, 0, sum(-amount), count(*) FROM ledger_entry WHERE amount < 0 GROUP BY account_id, created / 86400000000
	ON CONFLICT (account_id, day) DO NOTHING`,

	`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created)
	SELECT 'A' || substr(library_id, 2), account_id, 'IMG', 'image/png', 100000, '{sha256}', 1024, 1024, 'LEHV6nWB2yk8pyo0adR*.7kCMdnj',
		'media/' || library_id || '.png', 'media/' || library_id || '-thumb.png', '', finished
	FROM run WHERE worker = 'bench' AND status = 'succeeded'`,

	`INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created, search_text)
	SELECT {id}, id, 0, 'A' || substr(library_id, 2), account_id, tool_id, 'IMG', CASE WHEN seed < 80 THEN '16:9' ELSE '1:1' END, CASE WHEN seed < 80 THEN '4K+' ELSE '1K' END, finished, prompt
	FROM run WHERE worker = 'bench' AND status = 'succeeded'`,

	`INSERT INTO favorite (person_id, result_id, created) SELECT '{reader}', id, created FROM result WHERE account_id = '{team}' AND shape = '16:9'`,

	`INSERT INTO idempotency (person_id, key, fingerprint, run_id, response, created)
	SELECT person_id, 'growth-' || seed, '', id, '', created FROM run WHERE worker = 'bench'`,

	`INSERT INTO audit (seq, at, act, actor_id, person_id, company_id, address, details, hash)
	SELECT h.seq + 1 + r.seed, r.created, CASE WHEN r.seed < 10 THEN 'bench.rare' ELSE 'bench.usual' END, '', r.person_id, '{company}', '', '{}', ''
	FROM run r CROSS JOIN audit_head h WHERE r.worker = 'bench'`,
	`UPDATE audit_head SET seq = seq + {old}`,
}
