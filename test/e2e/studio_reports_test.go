package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// addTool adds a tool of the script engine to a stage, and waits until a node
// has it.
func (s *site) addTool(n *node, name string, tokens int, timeout string) {
	s.t.Helper()
	for _, setting := range s.env {
		if folder, ok := strings.CutPrefix(setting, "ATELIER_TOOLS="); ok {
			write(s.t, folder, strings.ToLower(name)+".yaml", fmt.Sprintf(`name: %s
price: {type: COST, tokens: %d}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
timeout: %s
fields:
  - {key: script, type: TEXT_AREA, label: Script, max_length: 10000}
`, name, tokens, timeout))
		}
	}
	seen := 0 // in a row: the proxy of several nodes asks one after the other
	watch.Until(s.t, "the tool "+name, func() bool {
		seen++
		if n.tools("", nil)[name] == "" {
			seen = 0
		}
		return seen > len(n.members)
	})
}

// orderOf asks a tool of the script engine for one result.
func (n *node) orderOf(tool string, steps ...string) order {
	n.t.Helper()
	id := n.tools("", nil)[tool]
	return order{
		ToolID:     id,
		Hash:       n.json("/api/v2/tools/" + id)["tool_fields_hash"].(string),
		Inputs:     map[string]any{"script": "[" + strings.Join(steps, ",") + "]"},
		NumResults: 1,
	}
}

// seeFigure waits until a large figure of the page has a value.
func seeFigure(b *browser.Browser, label, value string) {
	quoted, _ := json.Marshal([]string{label, value})
	b.Until(`[...document.querySelectorAll("dl > div")].some(one => one.children[0].textContent === ` + string(quoted) + `[0] && one.children[1].textContent === ` + string(quoted) + `[1])`)
}

// TestStudioReports reads the reports on runs of two people with two tools.
func TestStudioReports(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := openFirm(t, engine)
			n := s.nodes[0]
			for _, node := range s.nodes {
				s.addTool(node, "Painter", 7, "60s")
			}
			for _, one := range []struct {
				person int
				tool   string
				step   string
			}{{0, "Scripted", picture}, {0, "Scripted", picture}, {1, "Scripted", picture}, {1, "Painter", picture}, {1, "Painter", picture}, {1, "Painter", picture}, {1, "Painter", `{"fail": "broken"}`}} {
				a, err := s.nodes[one.person].create(s.tokens[one.person], "?team_id="+s.team, n.orderOf(one.tool, one.step), nil)
				if err != nil {
					t.Fatal(err)
				}
				a.want(t, 202)
			}
			n.settled(s.tokens[0], s.team)
			s.do("admin", "budget", "set", "--team", s.team, "--tokens", "100")

			b := signIn(t, n, "anna@fox.example", "/reports")
			seeFigure(b, "Tokens spent", "36")
			seeFigure(b, "Runs", "7")
			seeFigure(b, "Succeeded", "85.7%")
			seeRow(b, "Look", "36")
			lookAt(t, b, "reports")

			// The chart has a table with the same figures.
			b.ClickOn("button", "Tool")
			b.Until(`location.search.includes("group=tool")`)
			b.ClickOn("button", "As a table")
			b.Until(`(rows => rows.at(-1)?.innerText.split("\t").slice(1).join(" ") === "21 15")([...document.querySelectorAll("figure tbody tr")])`)
			lookAt(t, b, "reports-table")
			b.ClickOn("button", "As bars")

			// Filters stand in the address, and stay with a reload.
			b.Choose("All tools", "Painter")
			seeFigure(b, "Tokens spent", "21")
			b.ClickOn("button", "Drop the filters")
			b.ClickOn("button", "Person")
			seeRow(b, "bert@fox.example", "26")
			seeRow(b, "anna@fox.example", "10")
			b.ClickOn("button", "bert@fox.example")
			b.Until(`new URLSearchParams(location.search).get("person") === "bert@fox.example"`)
			seeFigure(b, "Tokens spent", "26")
			b.Reload()
			seeFigure(b, "Tokens spent", "26")
			b.Choose("All tools", "Scripted")
			seeFigure(b, "Tokens spent", "5")
			seeFigure(b, "Runs", "1")

			// The file is what the service answers for the same filters.
			for _, kind := range []string{"Usage as shown", "Every run"} {
				folder := t.TempDir()
				b.SaveTo(folder)
				b.ClickOn("button", "CSV")
				b.ClickOn("menuitem", kind)
				saved, err := os.ReadFile(awaitFile(t, folder, "*"))
				if err != nil {
					t.Fatal(err)
				}
				asked := b.Eval(`performance.getEntriesByType("resource").map(one => one.name).findLast(name => name.includes("format=csv"))`)
				answered := n.get(strings.TrimPrefix(asked, n.url), bearer(s.tokens[0])...)
				if answered.StatusCode != 200 || string(answered.body) != string(saved) {
					t.Errorf("%s is %q, and the service answers %d %q", kind, saved, answered.StatusCode, answered.body)
				}
				if text := string(saved); strings.Count(text, "\n") != 2 || !strings.Contains(text, "Scripted") && !strings.Contains(text, "bert@fox.example") {
					t.Errorf("%s = %q", kind, text)
				}
			}

			// A month without runs, and a person who may not see reports.
			b.Goto(n.url + "/reports?span=2025-01")
			b.See("heading", "No run ended in these days")
			lookAt(t, b, "reports-empty")
			member := signIn(t, s.nodes[1], "bert@fox.example", "/reports")
			seeText(member, "Your role in Fox does not have the permission “See reports”.")
			s.as(1, "GET", "/api/v2/reports/usage?group_by=person", "").want(t, 403)

			wantNoComplaints(t, b)
			wantNoComplaints(t, member)
			s.check()
		})
	}
}
