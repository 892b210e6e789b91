package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/money/report"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

func TestReportCursors(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		b.ran(someRuns()...)
		b.site.Admit(b.company, "bert@example.com", company.ViewCompanyReports)
		_, berts := b.site.Token("bert@example.com", b.company)
		second := b.site.Company("Second", company.EnterprisePlan)
		b.site.Admit(second, annasEmail, company.ViewCompanyReports)
		_, seconds := b.site.Token(annasEmail, second)
		anna := b.by(b.site.Device(b.people["anna"], "").Tokens.ID)
		for _, path := range bothReports {
			query := "?limit=3&" + inNovember
			cursor := getJSON[struct {
				NextCursor string `json:"next_cursor"`
			}](b.service, path+query).NextCursor
			bad := func(s *service, what, query, cursor string) {
				t.Helper()
				a := s.sendRequest("GET", path+query+"&cursor="+url.QueryEscape(cursor)).checkStatus(t, what+" at "+path, 400, "INVALID_REQUEST")
				if !strings.Contains(string(a.body), `"path":"cursor"`) {
					t.Errorf("%s at %s = %s, want a problem with the cursor", what, path, a.body)
				}
			}
			for i := range cursor {
				bad(b.service, "a changed cursor", query, altered(cursor, i))
				bad(b.service, "a cut cursor", query, cursor[:max(i, 1)])
			}
			bad(b.service, "a longer cursor", query, cursor+"A")
			bad(b.service, "no cursor of ours", query, "\x00")
			bad(b.by(berts), "another person's cursor", query, cursor)
			bad(b.by(seconds), "another company's cursor", query, cursor)
			bad(b.service, "a cursor for another time", "?limit=3&start_utc=2025-11-01&end_utc=2025-12-02", cursor)
			bad(b.service, "a cursor for another team", query+"&team_id="+b.teams[0], cursor)
			bad(b.service, "a cursor for another tool", query+"&tool_id="+b.tools[0], cursor)
			bad(b.service, "a cursor for another person", query+"&email=bert@example.com", cursor)
			if path == bothReports[0] {
				bad(b.service, "a cursor for other groups", query+"&group_by=tool", cursor)
				bad(b.service, "a cursor for more groups", query+"&group_by=day,tool", cursor)
			}
			other := bothReports[0]
			if path == other {
				other = bothReports[1]
			}
			b.sendRequest("GET", other+query+"&cursor="+cursor).checkStatus(t, "a cursor of "+path+" at "+other, 400, "INVALID_REQUEST")
			anna.sendRequest("GET", path+query+"&company_id="+b.company+"&cursor="+cursor).checkStatus(t, "her own cursor with another credential", 200, "")
			b.zone("Asia/Tokyo")
			bad(b.service, "a cursor of another clock", query, cursor)
			b.zone("UTC")
		}
	})
}

func TestReports(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		runs := someRuns()
		b.ran(runs...)
		b.setCatalog(manyTools(2)) // the third tool is no longer offered
		filters := map[string]func(past) bool{
			"":                                func(past) bool { return true },
			"&team_id=" + b.teams[1]:          func(p past) bool { return p.team == 1 },
			"&tool_id=" + b.tools[2]:          func(p past) bool { return p.tool == 2 },
			"&email=BERT@example.com":         func(p past) bool { return p.person == "bert" },
			"&team_id=" + ids.New():           func(past) bool { return false },
			"&tool_id=" + ids.New():           func(past) bool { return false },
			"&email=nobody@example.com":       func(past) bool { return false },
			"&team_id=&tool_id=&email=&x=%20": func(past) bool { return true },
			"&team_id=" + b.teams[0] + "&tool_id=" + b.tools[0] + "&email=anna@example.com": func(p past) bool { return p.team+p.tool == 0 && p.person == "anna" },
		}
		for filter, meant := range filters {
			var want report.Count
			for _, p := range runs {
				if meant(p) {
					want.Runs++
					want.TokensCharged += p.tokens
					want.Took += p.took
				}
			}
			for _, group := range []string{"day", "team", "person", "tool", "plugin", "credential", "day,team", "credential,day,plugin", "tool,person,team,day,plugin,credential"} {
				query := inNovember + filter + "&group_by=" + group
				whole, totals := b.rows(bothReports[0], query, 100)
				b.same(query, whole, totals, want)
				if filter != "" {
					continue
				}
				paged, again := b.rows(bothReports[0], query, 3)
				if fmt.Sprint(paged) != fmt.Sprint(whole) || !maps.Equal(again, totals) {
					t.Errorf("%s: the pages are not the whole:\n%v\n%v", query, paged, whole)
				}
				b.sameTable(bothReports[0], query, whole)
			}
			whole, totals := b.rows(bothReports[1], inNovember+filter, 100)
			if len(whole) != int(want.Runs) {
				t.Errorf("%s: %d runs, want %d", filter, len(whole), want.Runs)
			}
			b.sameTable(bothReports[1], inNovember+filter, whole)
			for i := range whole {
				whole[i]["runs"] = 1.0
			}
			b.same("runs "+filter, whole, totals, want)
		}
		whole, _ := b.rows(bothReports[1], inNovember, 100)
		paged, _ := b.rows(bothReports[1], inNovember, 7)
		if fmt.Sprint(paged) != fmt.Sprint(whole) {
			t.Errorf("the pages of runs are not the whole:\n%v\n%v", paged, whole)
		}
		if !slices.IsSortedFunc(whole, func(a, b map[string]any) int { return -strings.Compare(a["finished"].(string), b["finished"].(string)) }) {
			t.Error("the runs are not newest first")
		}
	})
}

// same fails the test unless rows and totals come to what is wanted.
func (b *reportFixture) same(what string, rows []map[string]any, totals map[string]any, want report.Count) {
	b.t.Helper()
	sum := map[string]float64{}
	for _, row := range rows {
		for _, name := range []string{"runs", "tokens_charged", "generation_seconds"} {
			sum[name] += row[name].(float64)
		}
	}
	for name, n := range map[string]float64{"runs": float64(want.Runs), "tokens_charged": float64(want.TokensCharged), "generation_seconds": want.Took.Seconds()} {
		if total := totals[name].(float64); total-n > 1e-6 || n-total > 1e-6 || sum[name]-n > 1e-6 || n-sum[name] > 1e-6 {
			b.t.Errorf("%s: %s is %v in all rows and %v in the totals, want %v", what, name, sum[name], total, n)
		}
	}
}

// sameTable fails the test unless a report has these rows as CSV too.
func (b *reportFixture) sameTable(path, query string, rows []map[string]any) {
	b.t.Helper()
	lines := b.table(path, query)
	columns := lines[0]
	if len(lines) != len(rows)+1 {
		b.t.Errorf("%s?%s has %d lines, want %d", path, query, len(lines), len(rows)+1)
		return
	}
	for i, row := range rows {
		if len(row) != len(columns) {
			b.t.Errorf("%s?%s has the columns %q, and members %v", path, query, columns, row)
			return
		}
		want := plainCells(columns, row)
		got := slices.Clone(lines[i+1])
		for j, text := range got {
			if rest, ok := strings.CutPrefix(text, "'"); ok && strings.ContainsAny(rest[:1], "=+-@") {
				got[j] = rest
			} else if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
				b.t.Errorf("%s?%s has a formula: %q", path, query, text)
			}
		}
		if !slices.Equal(got, want) {
			b.t.Errorf("%s?%s, line %d is %q, want %q", path, query, i+1, got, want)
			return
		}
	}
}

func TestReportRows(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		b.exec(`UPDATE access_token SET name = '=name' WHERE id = $1`, b.tokenID)
		b.ran(
			past{person: "anna", tool: 2, plugin: "=1+1", tokens: 5, took: 1500 * time.Millisecond, finished: november(3, 23)},
			past{person: "cleo", team: 1, plugin: "blender", status: "failed", credential: principal.IDToken, finished: november(2, 1)},
		)
		b.exec(`UPDATE person SET deleted = 1 WHERE id = $1`, b.people["cleo"])
		b.setCatalog(manyTools(2))
		rows, _ := b.rows(bothReports[0], inNovember+"&group_by=credential,day,plugin,person,team,tool", 10)
		if len(rows) != 2 {
			t.Fatalf("rows = %v", rows)
		}
		want := []map[string]any{
			{"credential": "company_token", "credential_id": b.tokenID, "credential_name": "=name", "day": "2025-11-03", "plugin": "=1+1", "uid": b.people["anna"], "email": annasEmail,
				"person": annasEmail, "team_id": b.teams[0], "team_name": "Look", "tool_id": b.tools[2], "tool_name": "Tool 0002", "runs": 1.0, "succeeded": 1.0, "failed": 0.0,
				"cancelled": 0.0, "results": 0.0, "tokens_charged": 5.0, "free_allowance_used": 0.0, "generation_seconds": 1.5},
			{"credential": "id_token", "credential_id": b.device, "credential_name": "blender", "day": "2025-11-02", "plugin": "blender", "uid": b.people["cleo"], "email": nil,
				"person": "deleted person", "team_id": b.teams[1], "team_name": "Light", "tool_id": b.tools[0], "tool_name": "Tool 0000", "runs": 1.0, "succeeded": 0.0, "failed": 1.0,
				"cancelled": 0.0, "results": 0.0, "tokens_charged": 0.0, "free_allowance_used": 0.0, "generation_seconds": 0.0},
		}
		for i := range want {
			if !maps.Equal(rows[i], want[i]) {
				t.Errorf("row %d = %v, want %v", i, rows[i], want[i])
			}
		}
		all, _ := b.rows(bothReports[1], inNovember, 10)
		if len(all) != 2 {
			t.Fatalf("runs = %v", all)
		}
		for i, more := range []map[string]any{
			{"status": "succeeded", "error_code": nil, "num_results": 1.0, "finished": "2025-11-03T23:00:00Z", "started": "2025-11-03T22:59:58Z"},
			{"status": "failed", "error_code": "ENGINE_FAILED", "num_results": 1.0, "finished": "2025-11-02T01:00:00Z", "created": "2025-11-02T00:59:59Z"},
		} {
			maps.Copy(more, want[i])
			for _, name := range []string{"day", "runs", "succeeded", "failed", "cancelled"} {
				delete(more, name)
			}
			for name, v := range more {
				if all[i][name] != v {
					t.Errorf("run %d has the %s %v, want %v", i, name, all[i][name], v)
				}
			}
		}
		lines := b.table(bothReports[0], inNovember+"&group_by=credential,person")
		if got := strings.Join(lines[0], ","); got != "uid,email,person,credential,credential_id,credential_name,runs,succeeded,failed,cancelled,results,tokens_charged,free_allowance_used,generation_seconds" {
			t.Errorf("columns = %s", got)
		}
		if lines[1][5] != "'=name" || lines[2][1] != "" || lines[2][2] != "deleted person" {
			t.Errorf("lines = %q", lines)
		}
		if got := strings.Join(b.table(bothReports[1], inNovember)[0], ","); got != "request_id,status,error_code,created,started,finished,team_id,team_name,uid,email,person,tool_id,tool_name,plugin,"+
			"credential,credential_id,credential_name,num_results,results,tokens_charged,free_allowance_used,generation_seconds" {
			t.Errorf("columns = %s", got)
		}
	})
}

// TestReportsAreOfOneCompany has runs of two companies in one table.
func TestReportsAreOfOneCompany(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		other := *b
		other.company = b.site.Company("Second", company.EnterprisePlan)
		other.teams = []string{b.site.Team(other.company, "Foreign", "member", annasEmail)}
		b.ran(past{person: "anna", tokens: 5, finished: november(3, 23)})
		other.ran(past{person: "anna", tokens: 7, finished: november(3, 23)})
		for _, path := range bothReports {
			for query, want := range map[string]float64{"": 5, "&email=" + annasEmail: 5, "&team_id=" + b.teams[0]: 5, "&team_id=" + other.teams[0]: 0, "&tool_id=" + b.tools[0]: 5} {
				rows, totals := b.rows(path, inNovember+query, 10)
				if totals["tokens_charged"] != want || (len(rows) > 0) != (want > 0) {
					t.Errorf("%s%s = %v, %v, want %v tokens", path, query, rows, totals, want)
				}
			}
		}
	})
}

func TestReportTimes(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		now := time.Now().UTC()
		b.ran(past{person: "anna", tokens: 1, finished: november(3, 23)}, past{person: "anna", tokens: 2, finished: november(4, 0)}, past{person: "anna", tokens: 4, finished: now})
		tokens := func(query string) float64 {
			t.Helper()
			_, totals := b.rows(bothReports[0], query, 100)
			_, again := b.rows(bothReports[1], query, 100)
			if !maps.Equal(totals, again) {
				t.Errorf("%s: usage has the totals %v, runs %v", query, totals, again)
			}
			return totals["tokens_charged"].(float64)
		}
		for query, want := range map[string]float64{
			"start_utc=2025-11-03&end_utc=2025-11-04":                                   1,
			"start_utc=2025-11-04&end_utc=2025-11-05":                                   2,
			"start_utc=2025-11-03T23:00:00Z&end_utc=2025-11-04T00:00:00.000001Z":        3,
			"start_utc=2025-11-04T00:00:00%2B01:00&end_utc=2025-11-04T01:00:00%2B01:00": 1,
			"start_utc=2025-11-03T18:00:00-05:00&end_utc=2025-11-03T23:59:59.999999Z":   1,
			"start_utc=2025-11-01": 7,
			"":                     4,
			"start_utc=2025-11-03&end_utc=2030-01-01&start_utc_=": 7,
		} {
			if got := tokens(query); got != want {
				t.Errorf("%s = %v tokens, want %v", query, got, want)
			}
		}
		page := getJSON[wire.UsageReport](b.service, bothReports[0])
		if began := page.StartUtc; began.Day() != 1 || began.Hour() != 0 || page.TimeZone != "UTC" || page.EndUtc.Before(now) || time.Since(page.EndUtc) > time.Minute {
			t.Errorf("this month is %v to %v in %s", page.StartUtc, page.EndUtc, page.TimeZone)
		}
		b.zone("Asia/Tokyo")
		page = getJSON[wire.UsageReport](b.service, bothReports[0])
		if began := page.StartUtc; began.Hour() != 15 || began.Add(9*time.Hour).Day() != 1 || page.TimeZone != "Asia/Tokyo" {
			t.Errorf("in Tokyo this month begins at %v, in %s", began, page.TimeZone)
		}
		rows, _ := b.rows(bothReports[0], "start_utc=2025-11-03&end_utc=2025-11-05", 10)
		if len(rows) != 1 || rows[0]["day"] != "2025-11-04" {
			t.Errorf("in Tokyo = %v, want all on 2025-11-04", rows)
		}
	})
}

// TestPagesKeepTheirTime leaves the end out: later pages are about the same
// time as the first, and so is what they sum up.
func TestPagesKeepTheirTime(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		now := time.Now().UTC()
		b.ran(past{person: "anna", tokens: 1, finished: now.Add(-2 * time.Microsecond)}, past{person: "anna", team: 1, tokens: 2, finished: now})
		for path, query := range map[string]string{bothReports[0]: "?limit=1&group_by=team", bothReports[1]: "?limit=1"} {
			first := getJSON[wire.UsageReport](b.service, path+query)
			b.ran(past{person: "anna", tokens: 4, finished: time.Now()}, past{person: "anna", team: 1, tokens: 4, finished: time.Now()})
			second := getJSON[wire.UsageReport](b.service, path+query+"&cursor="+*first.NextCursor)
			if !second.EndUtc.Equal(first.EndUtc) || !second.StartUtc.Equal(first.StartUtc) || second.Totals != first.Totals {
				t.Errorf("%s: the first page is %v to %v with %v, the second %v to %v with %v", path, first.StartUtc, first.EndUtc, first.Totals, second.StartUtc, second.EndUtc, second.Totals)
			}
		}
	})
}

func TestReportInput(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		for query, paths := range map[string][]string{
			"start_utc=yesterday":                                {"start_utc"},
			"start_utc=2025-11-31":                               {"start_utc"},
			"start_utc=2025-11-01T00:00:00":                      {"start_utc"},
			"start_utc=1969-12-31":                               {"start_utc"},
			"start_utc=1970-01-01T00:00:00%2B01:00":              {"start_utc"},
			"end_utc=9999-12-31T23:59:59-01:00":                  {"end_utc"},
			"end_utc=12025-11-01":                                {"end_utc"},
			"start_utc=2025-11-01&start_utc=2025-11-02":          {"start_utc"},
			"start_utc=2025-11-02&end_utc=2025-11-01":            {"end_utc"},
			"start_utc=2025-11-02&end_utc=2025-11-02":            {"end_utc"},
			"start_utc=2999-01-01":                               {"end_utc"},
			"end_utc=2025-01-01":                                 {"end_utc"},
			"end_utc=9999-12-31":                                 {"end_utc"},
			"start_utc=2015-11-01&end_utc=2025-11-01T00:00:01Z":  {"end_utc"},
			"tool_id=%00":                                        {"tool_id"},
			"email=anna":                                         {"email"},
			"email=a%00@example.com":                             {"email"},
			"email=%ff@example.com":                              {"email"},
			"email=" + strings.Repeat("a", 300) + "@example.com": {"email"},
			"format=xml":                                         {"format"},
			"format=CSV":                                         {"format"},
			"format=csv&format=json":                             {"format"},
			"limit=0":                                            {"limit"},
			"limit=101":                                          {"limit"},
			"limit=-1":                                           {"limit"},
			"limit=1e9":                                          {"limit"},
			"cursor=x":                                           {"cursor"},
			"cursor=x&cursor=x":                                  {"cursor"},
			"x=%zz":                                              {"query"},
			"start_utc=x&end_utc=x&tool_id=x&email=x&format=x&limit=x": {"start_utc", "end_utc", "tool_id", "email", "format", "limit"},
		} {
			for _, path := range bothReports {
				b.refused(path+"?"+query, paths)
			}
		}
		for query, reason := range map[string]string{
			"team_id=x":         "malformed",
			"team_id=a-b":       "malformed",
			"team_id=x&limit=0": "malformed",
			"team_id=" + b.teams[0] + "," + b.teams[1]:         "several",
			"team_id=" + b.teams[0] + "&team_id=" + b.teams[1]: "several",
		} {
			for _, path := range bothReports {
				for _, format := range []string{"json", "csv"} {
					a := b.sendRequest("GET", path+"?"+query+"&format="+format).checkStatus(t, query, 400, "ACCOUNT_SELECTION_INVALID")
					if got := a.readError(t).Details["reason"]; got != reason {
						t.Errorf("%s?%s: reason %v, want %s", path, query, got, reason)
					}
				}
			}
		}
		for _, groups := range []string{"hour", "day,", ",", "day,day", "day,team,day", "Day", "day,%20team", "day&group_by=team", "%00"} {
			b.refused(bothReports[0]+"?group_by="+groups, []string{"group_by"})
		}
		for _, groups := range []string{"flow,flow", "flow,tool", "plugin,flow", "day,flow,credential", "Flow"} {
			b.refused(bothReports[0]+"?group_by="+groups, []string{"group_by"})
			b.refused(bothReports[0]+"?format=csv&group_by="+groups, []string{"group_by"})
		}
		b.refused(bothReports[0]+"?group_by=hour&limit=0", []string{"group_by", "limit"})
		for _, fine := range []string{"start_utc=2015-11-01&end_utc=2025-11-01", "start_utc=&end_utc=&team_id=&tool_id=&email=&format=&group_by=&company_id=", "format=csv&limit=0&cursor=x", "group_by=team&x=1", "group_by=flow,day,team,person"} {
			b.sendRequest("GET", bothReports[0]+"?"+fine).checkStatus(t, fine, 200, "")
		}
	})
}

// refused fails the test unless a call has just these problems.
func (b *reportFixture) refused(path string, paths []string) {
	b.t.Helper()
	a := b.sendRequest("GET", path).checkStatus(b.t, path, 400, "INVALID_REQUEST")
	var e struct {
		Error struct {
			Details struct{ Fields []struct{ Path string } }
		}
	}
	if err := json.Unmarshal(a.body, &e); err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, f := range e.Error.Details.Fields {
		got = append(got, f.Path)
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(paths))) {
		b.t.Errorf("%s has problems with %v, want %v", path, got, paths)
	}
}

func TestHeadOfReports(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		b.ran(someRuns()...)
		for i, name := range []string{"usage", "runs"} {
			for _, method := range []string{"GET", "HEAD"} {
				a := b.sendRequest(method, bothReports[i]+"?format=csv&"+inNovember)
				want := `attachment; filename="` + name + `-2025-11-01-2025-12-01.csv"`
				if a.StatusCode != 200 || a.Header.Get("Content-Disposition") != want || a.Header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || a.Header.Get("Vary") != "Authorization" {
					t.Errorf("%s of %s = %d %v, want %s", method, name, a.StatusCode, a.Header, want)
				}
				if (len(a.body) > 0) != (method == "GET") {
					t.Errorf("%s of %s has %d bytes", method, name, len(a.body))
				}
			}
			b.sendRequest("HEAD", bothReports[i]+"?"+inNovember).checkStatus(t, "HEAD", 200, "")
			b.may(false)
			if a := b.sendRequest("HEAD", bothReports[i]+"?format=csv"); a.StatusCode != 403 {
				t.Errorf("HEAD of %s without the permission = %d, want 403", name, a.StatusCode)
			}
			b.may(true)
		}
	})
}

// TestReportsOfRunsThatEnd makes runs, and finds in the reports what they say
// themselves.
func TestReportsOfRunsThatEnd(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		studio := m.site.Company("Studio", company.EnterprisePlan)
		m.site.Admit(studio, annasEmail, company.ViewCompanyReports)
		team := m.site.Team(studio, "Look", "member", annasEmail)
		m.grant("", team, 100)
		_, token := m.site.Token(annasEmail, studio)
		live := m.site.Device(getJSON[wire.Identity](m.service, "/api/v2/me").User.UID, "blender").Tokens.ID
		ended := map[string]wire.Generation{}
		for _, token := range []string{token, live} {
			one := m.as(token).done("?team_id="+team, m.body("many", `,"plugin":"blender 1.4"`))
			ended[one.RequestID] = one
		}
		m.done("", m.body("one", "")) // her own, which is nobody's business
		rows := getJSON[wire.RunReport](m.by(token), bothReports[1])
		kinds := map[string]string{}
		for _, r := range rows.Data {
			kinds[r.Credential] = *r.CredentialName
			if g := ended[r.RequestID]; r.Status != string(g.Status) || r.Results != int64(len(g.Outputs)) || r.TokensCharged != g.TokensCharged || r.TokensCharged == 0 ||
				!r.Finished.Equal(*g.Finished) || r.NumResults != g.NumResults || r.Plugin != "blender 1.4" || r.TeamID != team || *r.ToolName != "many" {
				t.Errorf("%+v, want what %+v says", r, g)
			}
		}
		if want := map[string]string{"company_token": "test", "id_token": "blender"}; !maps.Equal(kinds, want) {
			t.Errorf("credentials = %v, want %v", kinds, want)
		}
		usage := getJSON[wire.UsageReport](m.by(token), bothReports[0]+"?group_by=plugin,credential")
		if len(usage.Data) != 2 || usage.Totals != rows.Totals || usage.Totals.Runs != 2 || usage.Totals.Results != 4 || usage.Totals.TokensCharged != 12 {
			t.Errorf("usage = %+v, runs have the totals %+v", usage, rows.Totals)
		}
	})
}
