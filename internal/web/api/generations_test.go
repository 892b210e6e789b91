package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/wire"
)

// comparableText is an answer without what differs each time.
func (a answer) comparableText(t *testing.T) string {
	t.Helper()
	h := a.Header.Clone()
	for _, name := range []string{"Date", "X-Trace-Id"} {
		h.Del(name)
	}
	return fmt.Sprint(a.StatusCode, h, strings.Replace(string(a.body), a.readError(t).TraceID, "", 1))
}

func TestForeignRunsAreMissing(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		bert := m.as(m.addPerson("bert@example.com"))
		team, tokens := m.team("Look", "anna@example.com")
		teams := m.as(tokens[0])
		mine, ours := m.run("", m.body("one", "")), teams.run("?team_id="+team, m.body("one", ""))
		const none = "01a1de95-0504-7cf9-98e5-dc2c78966646"
		for _, x := range []struct{ method, path string }{
			{"GET", ""}, {"POST", "/cancel"}, {"GET", "/events"}, {"GET", "/webhook-attempts"}, {"POST", "/webhook-attempts/redeliver"},
		} {
			for _, who := range []struct {
				name, id string
				*runFixture
				query string
			}{{"another person", mine, bert, ""}, {"the personal account", ours, m, ""}, {"the team", mine, teams, "?team_id=" + team}} {
				m.unchanged(who.name, func() {
					path := func(id string) string { return "/api/v2/generate/" + id + x.path + who.query }
					foreign, missing := who.sendRequest(x.method, path(who.id)), who.sendRequest(x.method, path(none))
					if foreign.StatusCode != 404 || foreign.comparableText(t) != missing.comparableText(t) {
						t.Errorf("%s %s: foreign is %s, missing %s", who.name, x.path, foreign.comparableText(t), missing.comparableText(t))
					}
				})
			}
		}
		created := decodeAnswer[wire.GenerationCreated](t, teams.send("POST", "/api/v2/generate?team_id="+team, "application/json", strings.NewReader(m.body("one", ""))))
		if want := "https://atelier.example/api/v2/generate/" + created.RequestID + "?team_id=" + team; created.StatusURL != want {
			t.Errorf("status_url is %s, want %s", created.StatusURL, want)
		}
		rec := getJSON[wire.Generation](teams.service, strings.TrimPrefix(created.StatusURL, "https://atelier.example"))
		if rec.TeamID == nil || *rec.TeamID != team {
			t.Errorf("record = %+v", rec)
		}
		teams.sendRequest("GET", "/api/v2/generate/"+ours).checkStatus(t, "without the team", 400, "ACCOUNT_SELECTION_INVALID")
	})
}

func TestEarlyPollsCount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(s *generation.Settings) { // a slow machine polls early too
			s.PollMin = 10 * time.Second
			s.PollMax = 10 * time.Second
		})
		bert := m.as(m.addPerson("bert@example.com"))
		id := m.run("", m.body("one", ""))
		path := "/api/v2/generate/" + id
		for range 20 { // nobody pays for what they do not see
			bert.sendRequest("GET", path).checkStatus(t, "foreign", 404, "NOT_FOUND")
		}
		anna := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		for range 2 { // other devices of hers have clocks of their own
			phone := m.as(m.site.Device(anna, "blender").Tokens.ID)
			phone.sendRequest("GET", path).checkStatus(t, "the first poll of another device", 200, "")
		}
		for i := range 9 {
			a := m.sendRequest("GET", path).checkStatus(t, fmt.Sprint("early poll ", i), 200, "")
			if a.Header.Get("Retry-After") != "10" || !strings.Contains(string(a.body), `"retry_after_seconds":10`) {
				t.Errorf("pending with Retry-After %q: %s", a.Header.Get("Retry-After"), a.body)
			}
		}
		a := m.sendRequest("GET", path).checkStatus(t, "one poll too many", 429, "RATE_LIMITED")
		if e := a.readError(t); !e.Retryable || a.Header.Get("Retry-After") == "" {
			t.Errorf("429 = %s", a.body)
		}
		m.create(m.body("one", "")).checkStatus(t, "a create after ten", 429, "RATE_LIMITED")
		m.work()
		m.finish("", id)
		a = m.sendRequest("GET", path).checkStatus(t, "a run that has ended", 200, "")
		if a.Header.Get("Retry-After") != "" {
			t.Error("an ended run says when to come back")
		}
		m.sendRequest("GET", "/api/v2/generations").checkStatus(t, "the list", 200, "")
	})
}

func TestCancel(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.site.Person("bert@example.com")
		m.site.Person("chief@example.com")
		team, tokens := m.team("Look", "anna@example.com", "bert@example.com", "chief@example.com")
		if _, err := m.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), team, company.TeamRole{
			Name: "chief", Permissions: []company.Permission{company.Generate, company.ManageTeam, company.UsePlugins}, PluginKinds: []string{company.AnyKind},
		}); err != nil {
			t.Fatal(err)
		}
		m.site.Join(team, "chief@example.com", "chief")
		anna, bert, chief := m.as(tokens[0]), m.as(tokens[1]), m.as(tokens[2])
		query := "?team_id=" + team
		cancel := func(who *runFixture, id string) answer {
			return who.sendRequest("POST", "/api/v2/generate/"+id+"/cancel"+query)
		}

		queued := anna.run(query, m.body("one", ""))
		m.unchanged("cancel by a member", func() {
			if a := cancel(bert, queued).checkStatus(t, "by a member", 403, "FORBIDDEN"); a.readError(t).Details["reason"] != "permission" {
				t.Errorf("by a member = %s", a.body)
			}
		})
		rec := decodeAnswer[wire.Generation](t, cancel(chief, queued).checkStatus(t, "by a manager", 202, ""))
		if rec.Status != "cancelled" || rec.TokensHeld != 0 || rec.TokensCharged != 0 || rec.Finished == nil {
			t.Errorf("cancelled = %+v", rec)
		}
		for range 2 {
			if a := cancel(anna, queued).checkStatus(t, "again", 200, ""); decodeAnswer[wire.Generation](t, a).Status != "cancelled" || a.Header.Get("Retry-After") != "" {
				t.Errorf("again = %s", a.body)
			}
		}

		m.work()
		running := anna.run(query, m.body("one", steps(`[{"hang":true}]`)))
		for range 500 {
			var stage *string
			if err := m.db.QueryRow(t.Context(), `SELECT stage FROM run WHERE id = $1`, running).Scan(&stage); err != nil {
				t.Fatal(err)
			}
			if stage != nil && *stage == "running" {
				break
			}
		}
		for range 2 {
			if a := cancel(anna, running); a.StatusCode != http.StatusAccepted && a.StatusCode != http.StatusOK {
				t.Errorf("cancel of a running one = %d %s", a.StatusCode, a.body)
			}
		}
		if rec := anna.finish(query, running); rec.Status != "cancelled" || rec.TokensCharged != 0 {
			t.Errorf("a running one ends as %+v", rec)
		}
		ended := anna.done(query, m.body("one", ""))
		if got := decodeAnswer[wire.Generation](t, cancel(anna, ended.RequestID).checkStatus(t, "a succeeded one", 200, "")); got.Status != "succeeded" || len(got.Outputs) != 1 {
			t.Errorf("a succeeded one = %+v", got)
		}
		failed := anna.done(query, m.body("one", steps(`[{"fail":{"code":"ENGINE_FAILED","message":"no"}}]`)))
		if failed.Status != "failed" || failed.Error == nil || failed.Error.Code != "ENGINE_FAILED" || failed.Error.Retryable || failed.TokensCharged != 0 {
			t.Errorf("failed = %+v", failed)
		}
	})
}

func TestPreviewCost(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(c *generation.Settings) { c.ActiveRuns, c.MonthlyAllowance = 2, 4 })
		price := func(who *runFixture, query, body string) answer {
			return who.send("POST", "/api/v2/generate/preview-cost"+query, "application/json", strings.NewReader(body))
		}
		body := m.body("many", `,"num_results":3`)
		var cost wire.CostPreview
		m.unchanged("prices", func() {
			for range 15 {
				cost = decodeAnswer[wire.CostPreview](t, price(m, "", body).checkStatus(t, "price", 200, ""))
			}
		})
		if cost.TotalTokens != 5 || cost.FreeAllowanceUsed != 4 || cost.TokensPerResult != 3 || !cost.CanRun || cost.BlockingReason != nil {
			t.Errorf("price = %+v", cost)
		}
		rec := getJSON[wire.Generation](m.service, "/api/v2/generate/"+m.run("", body))
		if rec.TokensHeld != cost.TotalTokens {
			t.Errorf("held are %d, the price was %d", rec.TokensHeld, cost.TotalTokens)
		}
		for tool, want := range map[string]int64{"one": 1, "tones": 1, "many": 2} { // tones has a default of 2, many a least
			cost := decodeAnswer[wire.CostPreview](t, price(m, "", m.body(tool, "")).checkStatus(t, tool, 200, ""))
			if got := cost.TotalTokens + cost.FreeAllowanceUsed; got != 3*want {
				t.Errorf("%s without num_results costs %d, want %d results for 3 each", tool, got, want)
			}
		}
		price(m, "", m.body("asks", "")).checkStatus(t, "without what is required", 200, "")
		for more, path := range map[string]string{
			`,"inputs":{"picture":{"kind":"MULTIPART","file_index":0}}`: "inputs.picture", `,"inputs":{"x":1}`: "inputs.x", `,"webhook_url":"http://x"`: "webhook_url", `,"inputs":{"prompt":1}`: "inputs.prompt",
		} {
			if a := price(m, "", m.body("asks", more)).checkStatus(t, more, 400, "INVALID_REQUEST"); !strings.Contains(string(a.body), path) {
				t.Errorf("%s = %s", more, a.body)
			}
		}
		price(m, "", m.body("many", `,"num_results":1`)).checkStatus(t, "too few", 400, "NUM_RESULTS_LIMIT")
		price(m, "", fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"x"}`, m.made["one"].ID)).checkStatus(t, "stale", 409, "TOOL_SCHEMA_STALE")
		price(m, "", fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":"x"}`, ids.New())).checkStatus(t, "unknown", 404, "NOT_FOUND")
		m.send("POST", "/api/v2/generate/preview-cost", "text/plain", strings.NewReader(body)).checkStatus(t, "no JSON", 415, "UNSUPPORTED_MEDIA_TYPE")

		blocked := func(why string, who *runFixture, query, body string) {
			t.Helper()
			c := decodeAnswer[wire.CostPreview](t, price(who, query, body).checkStatus(t, why, 200, ""))
			if c.CanRun || c.BlockingReason == nil || *c.BlockingReason == "" {
				t.Errorf("%s: %+v", why, c)
			}
		}
		m.run("", m.body("one", ""))
		blocked("as many runs as are allowed", m, "", body)
		bert := m.as(m.addPerson("bert@example.com"))
		blocked("no tokens", bert, "", body)
		team, tokens := m.team("Look", "bert@example.com")
		if _, err := m.site.Companies.TeamRoles.SetTeamRolePermissions(t.Context(), principal.Operator(), team, "member", map[company.Permission]bool{company.Generate: false}); err != nil {
			t.Fatal(err)
		}
		blocked("no permission", m.as(tokens[0]), "?team_id="+team, body)
		if a := m.as(tokens[0]).send("POST", "/api/v2/generate?team_id="+team, "application/json", strings.NewReader(body)).checkStatus(t, "create without permission", 403, "FORBIDDEN"); a.readError(t).Details["reason"] != "permission" {
			t.Errorf("create without permission = %s", a.body)
		}
	})
}

func TestGenerationsPage(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		want := map[string]bool{}
		for range 7 {
			want[m.run("", m.body("one", ""))] = true
		}
		other := m.run("", m.body("wide", ""))
		m.sendRequest("POST", "/api/v2/generate/"+other+"/cancel").checkStatus(t, "cancel", 202, "")
		next := ""
		for page := 0; ; page++ {
			list := getJSON[wire.GenerationList](m.service, "/api/v2/generations?limit=3&tool_id="+m.made["one"].ID+next)
			for _, one := range list.Data {
				if !want[one.RequestID] && one.QueuePosition == nil {
					t.Errorf("%s is listed twice or is not one of them", one.RequestID)
				}
				delete(want, one.RequestID)
			}
			if !list.HasMore {
				break
			}
			next = "&cursor=" + *list.NextCursor
			m.run("", m.body("one", "")) // newer ones are on no later page
			m.sendRequest("GET", "/api/v2/generations?limit=3"+next).checkStatus(t, "a cursor of another filter", 400, "INVALID_REQUEST")
		}
		if len(want) != 0 {
			t.Errorf("%d runs were skipped", len(want))
		}
		if got := getJSON[wire.GenerationList](m.service, "/api/v2/generations?status=cancelled").Data; len(got) != 1 || got[0].RequestID != other {
			t.Errorf("cancelled are %+v", got)
		}
		for _, query := range []string{"status=queued", "status=", "status=pending&status=failed", "tool_id=x", "limit=0", "cursor=x", "limit=101"} {
			want := 400
			if query == "status=" {
				want = 200
			}
			if a := m.sendRequest("GET", "/api/v2/generations?"+query); a.StatusCode != want {
				t.Errorf("%s = %d %s", query, a.StatusCode, a.body)
			}
		}
	})
}

// TestRunsSayWhatWasRequested: a feed of runs shows the tool, the prompt and
// the person, and on request the inputs, also of runs that failed.
func TestRunsSayWhatWasRequested(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		anna := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		const prompt = "a fox in the snow"
		made := m.done("", m.body("one", `,"inputs":{"prompt":"`+prompt+`"}`))
		if made.Prompt == nil || *made.Prompt != prompt || made.UID != anna || made.ToolName == nil || *made.ToolName == "" || made.Inputs != nil {
			t.Errorf("run = %+v, want its prompt, person and tool, and no inputs", made)
		}

		path := "/api/v2/generate/" + made.RequestID
		for range 2 { // the second response could come from a cache
			one := getJSON[wire.Generation](m.service, path+"?include=inputs")
			if one.Inputs == nil || !strings.Contains(string(*one.Inputs), prompt) {
				t.Errorf("run = %+v, want the prompt in its inputs", one)
			}
			if plain := getJSON[wire.Generation](m.service, path); plain.Inputs != nil {
				t.Errorf("inputs = %s without a request for them", *plain.Inputs)
			}
		}
		list := getJSON[wire.GenerationList](m.service, "/api/v2/generations?include=inputs").Data
		if len(list) != 1 || list[0].Inputs == nil || !strings.Contains(string(*list[0].Inputs), prompt) {
			t.Errorf("list = %+v, want the inputs in it", list)
		}
		for _, path := range []string{path, "/api/v2/generations"} {
			m.sendRequest("GET", path+"?include=all").checkStatus(t, path, 400, "INVALID_REQUEST")
		}
	})
}
