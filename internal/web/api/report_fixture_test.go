package api_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/report"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

// The two reports.
var bothReports = []string{"/api/v2/reports/usage", "/api/v2/reports/runs"}

// reportFixture is a company with an Enterprise plan whose reports Anna may read.
type reportFixture struct {
	*service
	company string
	teams   []string
	tools   []string
	people  map[string]string // ids by name: anna, bert, cleo
	device  string            // of Anna
	tokenID string            // of the company, for Anna; the service uses it
}

// reports runs fn with a fixture on each database.
func reports(t *testing.T, fn func(t *testing.T, b *reportFixture)) {
	eachDatabase(t, func(t *testing.T, s *service) { fn(t, newReportFixture(s)) })
}

func newReportFixture(s *service) *reportFixture {
	s.t.Helper()
	b := &reportFixture{service: s, people: map[string]string{}}
	s.setCatalog(manyTools(3))
	for _, tool := range getJSON[wire.ToolList](s, "/api/v2/tools").Data {
		b.tools = append(b.tools, tool.ID)
	}
	b.people["anna"] = getJSON[wire.Identity](s, "/api/v2/me").User.UID
	b.people["bert"], b.people["cleo"] = s.site.Person("bert@example.com"), s.site.Person("cleo@example.com")
	b.company = s.site.Company("Studio", company.EnterprisePlan)
	b.may(true)
	b.teams = []string{s.site.Team(b.company, "Look", "member", annasEmail), s.site.Team(b.company, "Light", "member", annasEmail)}
	b.device = s.site.Device(b.people["anna"], "blender").DeviceID
	b.tokenID, s.token = s.site.Token(annasEmail, b.company)
	return b
}

// may grants Anna the permission to read reports, or removes it.
func (b *reportFixture) may(read bool) {
	b.t.Helper()
	if read {
		b.site.Admit(b.company, annasEmail, company.ViewCompanyReports)
	} else {
		b.site.Admit(b.company, annasEmail, company.ManageTeams)
	}
}

// zone sets the time zone of the company.
func (b *reportFixture) zone(name string) {
	b.t.Helper()
	if err := b.db.Write(b.t.Context(), func(tx *sqldb.Tx) error { return report.SetZone(b.t.Context(), tx, b.company, name) }); err != nil {
		b.t.Fatal(err)
	}
}

func (s *service) exec(query string, args ...any) {
	s.t.Helper()
	if err := s.db.Write(s.t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(s.t.Context(), query, args...); return err }); err != nil {
		s.t.Fatal(err)
	}
}

// by returns the service with another token.
func (s *service) by(token string) *service {
	other := *s
	other.token = token
	return &other
}

// past is a run that has ended.
type past struct {
	team, tool int // indexes of the fixture's teams and tools
	person     string
	plugin     string
	credential principal.Kind // "" for the company's token
	status     string         // "" for succeeded
	tokens     int64
	took       time.Duration
	finished   time.Time
}

// ran inserts runs that have ended in the past, and counts them in the reports.
func (b *reportFixture) ran(runs ...past) {
	b.t.Helper()
	for some := range slices.Chunk(runs, 100) { // a transaction has a limit of time
		err := b.db.Write(b.t.Context(), func(tx *sqldb.Tx) error {
			for _, p := range some {
				if err := b.insert(tx, p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *reportFixture) insert(tx *sqldb.Tx, p past) error {
	kind, credential, status, code := string(principal.CompanyToken), b.tokenID, "succeeded", ""
	if p.credential == principal.IDToken {
		kind, credential = string(p.credential), b.device
	}
	if p.status != "" {
		status = p.status
	}
	if status == "failed" {
		code = "ENGINE_FAILED"
	}
	_, err := tx.Exec(b.t.Context(), `
		INSERT INTO run (id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed, num_results,
			metadata, webhook_url, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used, status, attempt, worker, cancel, preview,
			revision, error_code, error_message, created, started, finished)
		VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9, (SELECT hash FROM tool WHERE id = $9), 'script', '{}', '', 1, 1,
			'', '', 1, 0, $10, 0, '', $10, 0, $11, 1, '', FALSE, '', 1, $12, '', $13, $14, $15)`,
		uuid.NewString(), ids.New(), b.people[p.person], b.teams[p.team], b.company, kind, credential, p.plugin, b.tools[p.tool],
		p.tokens, status, code, sqldb.At(p.finished.Add(-p.took-time.Second)), sqldb.At(p.finished.Add(-p.took)), sqldb.At(p.finished))
	if err != nil {
		return err
	}
	return report.Add(b.t.Context(), tx, report.EndedRun{
		CompanyID: b.company, TeamID: b.teams[p.team], PersonID: b.people[p.person], ToolID: b.tools[p.tool], Plugin: p.plugin, Credential: kind, CredentialID: credential,
		Status: status, TokensCharged: p.tokens, Started: p.finished.Add(-p.took), Finished: p.finished,
	})
}

// november returns a time that is far from the clock of every test.
func november(day, hour int) time.Time { return time.Date(2025, 11, day, hour, 0, 0, 0, time.UTC) }

// inNovember are the parameters for all of it.
const inNovember = "start_utc=2025-11-01&end_utc=2025-12-01"

// someRuns are runs of all sorts.
func someRuns() (all []past) {
	people, plugins := []string{"anna", "bert", "cleo"}, []string{"", "blender", "=HYPERLINK(\"http://evil.example\")", "-1+1", "+1", "@sum", "a,b", `say "hi"`}
	for i := range 60 {
		p := past{team: i % 2, tool: i % 3, person: people[i/2%3], plugin: plugins[i%len(plugins)], tokens: int64(i), took: time.Duration(i) * 137 * time.Millisecond, finished: november(1+i%20, i%24)}
		switch {
		case i%10 == 7:
			p.status, p.tokens = "failed", 0
		case i%10 == 9:
			p.status, p.tokens = "cancelled", 0
		}
		if i%4 == 0 {
			p.credential = principal.IDToken
		}
		all = append(all, p)
	}
	return all
}

// rows reads all pages of a report as plain JSON.
func (b *reportFixture) rows(path, query string, limit int) (rows []map[string]any, totals map[string]any) {
	b.t.Helper()
	for next := ""; ; {
		page := getJSON[struct {
			Data       []map[string]any
			HasMore    bool    `json:"has_more"`
			NextCursor *string `json:"next_cursor"`
			Totals     map[string]any
		}](b.service, fmt.Sprintf("%s?%s&limit=%d%s", path, query, limit, next))
		if totals != nil && !maps.Equal(totals, page.Totals) {
			b.t.Errorf("%s?%s: totals are %v on one page and %v on another", path, query, totals, page.Totals)
		}
		rows, totals = append(rows, page.Data...), page.Totals
		if page.HasMore != (page.NextCursor != nil) || page.HasMore && len(page.Data) != limit {
			b.t.Fatalf("%s?%s: %d rows, has_more %v, cursor %v", path, query, len(page.Data), page.HasMore, page.NextCursor)
		}
		if !page.HasMore {
			return rows, totals
		}
		next = "&cursor=" + *page.NextCursor
	}
}

// plainCells are the cells that a row of JSON is in CSV, before formulas are defused.
func plainCells(columns []string, row map[string]any) (line []string) {
	for _, name := range columns {
		switch v := row[name].(type) {
		case nil:
			line = append(line, "")
		case string:
			line = append(line, v)
		case float64:
			line = append(line, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	return line
}

func (b *reportFixture) table(path, query string) [][]string {
	b.t.Helper()
	a := b.sendRequest("GET", path+"?"+query+"&format=csv")
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" {
		b.t.Fatalf("%s?%s as CSV = %d %s", path, query, a.StatusCode, a.Header)
	}
	if n := bytes.Count(a.body, []byte("\n")); n != bytes.Count(a.body, []byte("\r\n")) {
		b.t.Errorf("%s?%s has lines that do not end as RFC 4180 says", path, query)
	}
	lines, err := csv.NewReader(bytes.NewReader(a.body)).ReadAll()
	if err != nil {
		b.t.Fatal(err)
	}
	return lines
}
