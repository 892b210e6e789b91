package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/dispatch"
	"atelier/internal/people/company"
	"atelier/internal/run/flowrun"
	"atelier/internal/web/api/wire"
)

// workFlows starts a worker, and decides about flows, until the test ends.
func (m *runFixture) workFlows() {
	m.t.Helper()
	m.work()
	decider := &flowrun.Decider{DB: m.db, Runs: m.parts.Runs, Log: slog.New(slog.DiscardHandler), Loop: dispatch.NewLoop()}
	ctx, stop := context.WithCancel(context.WithoutCancel(m.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			decider.DecideDue(ctx)
			<-time.After(20 * time.Millisecond)
		}
	}()
	m.t.Cleanup(func() {
		stop()
		<-ended
	})
}

// saveFlow saves a flow of two steps, and returns it with the body of a create
// request.
func (m *runFixture) saveFlow(query, name string) (flow wire.Flow, body string) {
	m.t.Helper()
	draft := `{"name":"` + name + `","fields":[{"key":"prompt","type":"PROMPT","label":"Prompt"}],"steps":[
		{"id":"draft","tool":"one","inputs":{"prompt":{"field":"prompt"}}},{"id":"large","tool":"one","inputs":{"picture":{"step":"draft"}}}]}`
	a := m.send("POST", "/api/v2/flows"+query, "application/json", strings.NewReader(draft)).checkStatus(m.t, "save", 201, "")
	flow = decodeAnswer[wire.Flow](m.t, a)
	tool := getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+flow.ID+query)
	return flow, fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":%q,"inputs":{"prompt":"a fox"}}`, tool.ID, tool.ToolFieldsHash)
}

// TestReportsByFlow runs a saved flow, and reads its usage and its name, also
// after it was deleted.
func TestReportsByFlow(t *testing.T) {
	eachOperatorFixture(t, func(t *testing.T, m *operatorFixture) {
		studio := m.site.Company("Studio", company.EnterprisePlan)
		m.site.Admit(studio, annasEmail, company.ViewCompanyReports)
		team := m.site.Team(studio, "Look", "member", annasEmail)
		m.grant("", team, 100)
		_, token := m.site.Token(annasEmail, studio)
		member := m.as(token)
		query := "?team_id=" + team
		flow, body := member.saveFlow(query, "=Poster")
		id := member.run(query, body)
		listed := func(when string) {
			t.Helper()
			all := m.pageRuns(t, func(answer) {})
			if len(all) != 1 || all[0].RequestID != id || all[0].ToolID != flow.ID || all[0].ToolName == nil || *all[0].ToolName != "=Poster" {
				t.Errorf("%s, the operator sees %+v", when, all)
			}
		}
		listed("while the flow exists")
		member.sendRequest("DELETE", "/api/v2/flows/"+flow.ID+query).checkStatus(t, "delete", 204, "")
		listed("after the flow was deleted")

		m.workFlows()
		if g := member.finish(query, id); g.Status != "succeeded" || g.TokensCharged != 6 || len(g.Outputs) != 1 {
			t.Fatalf("flow = %+v", g)
		}
		one := member.done(query, member.body("one", ""))
		b := &reportFixture{service: member.service, company: studio}
		rows, totals := b.rows(bothReports[0], "group_by=flow", 10)
		if len(rows) != 1 || rows[0]["flow_id"] != flow.ID || rows[0]["flow_name"] != "=Poster" || rows[0]["runs"] != 1.0 || rows[0]["succeeded"] != 1.0 ||
			rows[0]["results"] != 1.0 || rows[0]["tokens_charged"] != 6.0 || rows[0]["generation_seconds"] == 0.0 {
			t.Fatalf("by flow: %v", rows)
		}
		for name, n := range totals {
			if rows[0][name] != n {
				t.Errorf("the total of %s is %v, want %v", name, n, rows[0][name])
			}
		}
		for _, groups := range []string{"flow", "day,flow", "flow,team", "person,flow,day,team"} {
			rows, again := b.rows(bothReports[0], "group_by="+groups, 1)
			if len(rows) != 1 || rows[0]["tokens_charged"] != 6.0 || !maps.Equal(again, totals) {
				t.Errorf("by %s: %v, in total %v", groups, rows, again)
			}
			b.sameTable(bothReports[0], "group_by="+groups, rows)
		}
		for filter, n := range map[string]int{"&tool_id=" + flow.ID: 1, "&tool_id=" + one.ToolID: 0, "&team_id=" + team: 1, "&email=" + annasEmail: 1, "&email=nobody@example.com": 0} {
			if rows, _ := b.rows(bothReports[0], "group_by=flow"+filter, 10); len(rows) != n {
				t.Errorf("%s: %v, want %d rows", filter, rows, n)
			}
		}

		// The flow, its two steps and the other run, each once.
		rows, totals = b.rows(bothReports[0], "group_by=tool", 10)
		if len(rows) != 2 || totals["runs"] != 4.0 || totals["tokens_charged"] != 9.0 {
			t.Errorf("by tool: %v, in total %v", rows, totals)
		}
		for _, row := range rows {
			if want := map[any]string{flow.ID: "=Poster", one.ToolID: "one"}[row["tool_id"]]; row["tool_name"] != want {
				t.Errorf("row %v, want the name %q", row, want)
			}
		}
		b.sameTable(bothReports[0], "group_by=tool", rows)
		rows, _ = b.rows(bothReports[1], "x=1", 10)
		if len(rows) != 4 {
			t.Errorf("runs = %v", rows)
		}
		for _, row := range rows {
			if (row["tool_name"] == "=Poster") != (row["request_id"] == id) {
				t.Errorf("run %v", row)
			}
		}
		b.sameTable(bothReports[1], "x=1", rows)

		// The steps of a flow are charged, and not the flow. Entries with the id
		// of a flow would have its name.
		m.exec(`UPDATE run SET tool_id = $1 WHERE parent_id = $2`, flow.ID, id)
		entries := getJSON[wire.LedgerList](member.service, "/api/v2/ledger"+query).Data
		for i, want := range []string{"one", "=Poster", "=Poster"} {
			if len(entries) < 3 || entries[i].ToolName == nil || *entries[i].ToolName != want {
				t.Fatalf("entries = %+v", entries)
			}
		}
		m.exec(`UPDATE run SET tool_id = $1 WHERE parent_id = $2`, one.ToolID, id)
	})
}
