package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/report"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
)

// few is how many runs the smaller company has.
const few = 10_000

// reports measures what a company that has many runs in a month used against
// one that has few.
func (b *bench) reports(ctx context.Context) error {
	if err := b.reportsOn(ctx, "SQLite", ""); err != nil || !b.oldPG {
		return err
	}
	return b.onPostgres(ctx, func(address string) error { return b.reportsOn(ctx, "PostgreSQL with fsync", address) })
}

func (b *bench) reportsOn(ctx context.Context, where, database string) error {
	s, err := b.serve(ctx, "reports-"+strings.Fields(where)[0], settings{tools: map[string]string{"tags.yaml": tags, "sketch.yaml": sketch}, database: database, roles: "api"})
	if err != nil {
		return err
	}
	defer s.remove()
	people, err := gather(ctx, s, 64)
	if err != nil {
		return err
	}
	j, err := s.job(people[0].token, "Sketch", words)
	if err != nil {
		return err
	}
	if err := greet(s.creates(people[:1], j)); err != nil { // from then on its version is known
		return err
	}
	now := time.Now().UTC()
	until := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	from := until.AddDate(0, -1, 0)
	s.stop() // it must not look while the indexes are away
	var firms []firm
	begin := time.Now()
	for _, n := range []int{few, b.old} {
		f, err := found(ctx, s, people[0])
		if err != nil {
			return err
		}
		if err := f.fill(ctx, s, people, j, n, from, until); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		firms = append(firms, f)
	}
	fmt.Printf("%d and %d runs of a company in %s, in %v (%s), of %d people and %d teams: every fourth succeeded with a result;\n",
		few, b.old, from.Format("2006-01"), time.Since(begin).Round(time.Second), where, len(people), teams)
	fmt.Printf("the companies' days are those of %s, so that the month by UTC begins and ends within a day\n", zone)
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, by := range []struct {
		name  string
		least float64
	}{{"day", 1.0 / 3}, {"team", 0}, {"person", 0}} { // only by day there is a promise
		var sides []side
		for i, n := range []int{few, b.old} {
			q := url.Values{"start_utc": {from.Format(time.RFC3339)}, "end_utc": {until.Format(time.RFC3339)}, "group_by": {by.name}, "limit": {"100"}}
			t := s.with("/api/v2/reports/usage?" + q.Encode())
			t.token = firms[i].token
			if err := holds(s, t, n); err != nil {
				return err
			}
			sides = append(sides, asking(fmt.Sprintf("GET /reports/usage of a month by %s over %d runs (%s)", by.name, n, where), t))
		}
		if err := b.compare("reports/s", sides[1], sides[0], by.least); err != nil {
			return err
		}
	}
	return nil
}

// holds asks once and fails where the report is not of so many runs.
func holds(s *server, t target, n int) error {
	var page struct {
		Data   []struct{ Runs int }
		Totals struct{ Runs int }
	}
	if err := s.read(t.token, t.path, &page); err != nil {
		return err
	}
	sum := 0
	for _, row := range page.Data {
		sum += row.Runs
	}
	if page.Totals.Runs != n || sum != n {
		return fmt.Errorf("%s: %d runs in all and %d in rows, want %d", t.path, page.Totals.Runs, sum, n)
	}
	return nil
}

// firm is a company whose reports somebody reads with a token.
type firm struct {
	id, token string
	teams     []string
}

const (
	teams = 8
	zone  = "Asia/Kathmandu" // a quarter to six ahead
)

// found makes a company behind the server's back.
func found(ctx context.Context, s *server, reader member) (f firm, err error) {
	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return f, err
	}
	defer db.Close()
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		f = firm{}
		made, err := company.Create(ctx, tx, "Bench", company.EnterprisePlan)
		if err != nil {
			return err
		}
		f.id = made.ID
		role, err := company.EnsureRole(ctx, tx, f.id, []company.Permission{company.ViewCompanyReports})
		if err != nil {
			return err
		}
		if _, err := company.SetMember(ctx, tx, f.id, reader.id, role); err != nil {
			return err
		}
		for i := range teams {
			t, err := company.CreateTeam(ctx, tx, f.id, fmt.Sprintf("Team %d", i))
			if err != nil {
				return err
			}
			f.teams = append(f.teams, t.ID)
		}
		_, f.token, err = credential.Create(ctx, tx, credential.Draft{PersonID: reader.id, CompanyID: f.id, MintedBy: reader.id, Name: "bench"})
		if err != nil {
			return err
		}
		return report.SetZone(ctx, tx, f.id, zone)
	})
	return f, err
}

// fill gives a company runs that ended in a time, and counts them.
func (f firm) fill(ctx context.Context, s *server, people []member, j job, n int, from, until time.Time) error {
	err := inBulk(ctx, s, func(db *store) []string {
		statements := append(listPeople(people), `CREATE TABLE bench_team (i BIGINT PRIMARY KEY, id TEXT NOT NULL)`)
		for i, id := range f.teams {
			statements = append(statements, fmt.Sprintf(`INSERT INTO bench_team (i, id) VALUES (%d, '%s')`, i, id))
		}
		for _, text := range firmRows {
			statements = append(statements, strings.NewReplacer(
				"{runs}", fmt.Sprint(n), "{people}", fmt.Sprint(len(people)), "{teams}", fmt.Sprint(len(f.teams)), "{company}", f.id,
				"{first}", fmt.Sprint(from.UnixMicro()), "{step}", fmt.Sprint(until.Sub(from).Microseconds()/int64(n)), "{group}", ids.Hash(f.id)[:4],
				"{id}", db.newID, "{tool}", j.toolID, "{hash}", j.hash, "{inputs}", j.inputs, "{sha256}", ids.Hash("bench")).Replace(text))
		}
		return append(statements, `DROP TABLE bench_person`, `DROP TABLE bench_team`)
	})
	if err != nil {
		return err
	}
	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Write(ctx, func(tx *sqldb.Tx) error { return report.Recount(ctx, tx, f.id) }); err != nil {
		return err
	}
	return db.MaintainFiles(ctx)
}

// firmRows fill the tables that reports are about, on both databases alike.
var firmRows = []string{
	`INSERT INTO run (id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
		num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
		status, attempt, worker, cancel, preview, revision, error_code, error_message, created, started, finished, results)
	WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {runs})
	SELECT '00000000-0000-7000-{group}-' || substr(CAST(1000000000000 + n.i AS TEXT), 2), {id}, p.id, t.id, t.id, '{company}', 'company_token', 'bench',
		CASE n.i % 3 WHEN 0 THEN 'blender' ELSE '' END, '{tool}', '{hash}', 'image',
		'{inputs}', 'a red fox in the snow', n.i, 1, '', '', 2, 2, 1, 1, 0, '', CASE n.i % 4 WHEN 0 THEN 1 ELSE 0 END, 0,
		CASE n.i % 4 WHEN 0 THEN 'succeeded' ELSE 'cancelled' END, 1, '{company}', FALSE, '', 4, '', '', {first} + n.i * {step} - 2000000, {first} + n.i * {step} - 1900000, {first} + n.i * {step},
		CASE n.i % 4 WHEN 0 THEN 1 ELSE 0 END
	FROM n JOIN bench_person p ON p.i = n.i % {people} JOIN bench_team t ON t.i = n.i / 7 % {teams}`,

	`INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, blurhash, blob, thumb, preview, created)
	SELECT 'A' || substr(library_id, 2), account_id, 'IMG', 'image/png', 100000, '{sha256}', 1024, 1024, 'LEHV6nWB2yk8pyo0adR*.7kCMdnj',
		'media/' || library_id || '.png', 'media/' || library_id || '-thumb.png', '', finished
	FROM run WHERE worker = '{company}' AND status = 'succeeded'`,

	`INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, created)
	SELECT {id}, id, 0, 'A' || substr(library_id, 2), account_id, tool_id, 'IMG', '1:1', '1K', finished
	FROM run WHERE worker = '{company}' AND status = 'succeeded'`,
}
