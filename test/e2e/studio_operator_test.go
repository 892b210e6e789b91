package e2e

import (
	"strings"
	"testing"
)

// TestStudioOperator operates an installation: its engines, its work, its people
// and their tokens.
func TestStudioOperator(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			const key = "key-that-nobody-sees"
			s := newStage(t, engine, "ATELIER_OPERATORS=anna@example.com", "ATELIER_RUNS_PARALLEL=1", "ATELIER_SMTP_PASSWORD="+key)
			s.oneWorker = true
			annaToken := s.token("anna@example.com")
			bertToken := s.token("bert@example.com")
			s.grant("--email", "bert@example.com", 100)
			company := s.do("admin", "company", "create", "--name", "Fox", "--plan", "ENTERPRISE")["id"].(string)
			s.do("admin", "team", "create", "--company", company, "--name", "Look")
			n := s.serve()
			n.token = bertToken
			s.addTool(n, "Slow", 5, "10m")
			for range 2 {
				a, err := n.create(bertToken, "", n.orderOf("Slow", `{"wait": "10m"}`), nil)
				if err != nil {
					t.Fatal(err)
				}
				a.want(t, 202)
			}

			// One run goes, and one waits for the only place of the engine.
			b := signIn(t, n, "anna@example.com", "/operator")
			seeFigure(b, "Running", "1")
			seeFigure(b, "Waiting", "1")
			seeRow(b, "script", "available", "1 of 1", "2 tools")
			lookAt(t, b, "operator-status")

			openPart(b, "Work", "Waiting and running work")
			b.ClickOn("button", "waiting")
			seeRow(b, "Slow", "waiting", "bert@example.com")
			b.ClickOn("button", "All")
			lookAt(t, b, "operator-work")
			for range 2 {
				b.ClickOn("button", "running")
				// The button of a run that is being cancelled does nothing.
				b.Until(`document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody button:enabled") !== null`)
				b.ClickOn("button", "Cancel the run of Slow by bert@example.com")
				b.ClickOn("button", "Cancel the run")
				seeText(b, "The run is cancelled.")
				b.Until(`document.querySelector("dialog[open]") === null`)
			}
			b.ClickOn("button", "All")
			b.See("heading", "Nothing waits and nothing runs")
			for id, run := range n.settled(bertToken, "") {
				if run["status"] != "cancelled" {
					t.Errorf("run %s is %v", id, run["status"])
				}
			}

			// A grant is seen at once by the person who receives it.
			other := signIn(t, n, "bert@example.com", "/you")
			other.See("link", "100 tokens to spend. Open balance and history.")
			openPart(b, "People", "People")
			b.TypeInto("searchbox", "Find by e-mail address", "bert")
			missRow(b, "anna@example.com")
			seeRow(b, "bert@example.com", "100")
			b.ClickOn("button", "Grant tokens to bert@example.com")
			b.ClickOn("button", "Grant the tokens")
			seeText(b, "Give a number other than zero.")
			seeText(b, "Give a reason.")
			b.TypeInto("spinbutton", "Tokens", "50")
			b.TypeInto("textbox", "Reason", "For the autumn film")
			lookAt(t, b, "operator-grant")
			b.ClickOn("button", "Grant the tokens")
			seeRow(b, "bert@example.com", "150")
			lookAt(t, b, "operator-people")
			other.See("link", "150 tokens to spend. Open balance and history.")
			seeRow(other, "Grant of the operator", "For the autumn film", "+50")

			openPart(b, "Companies", "Fox")
			b.ClickOn("button", "Grant tokens to Look")
			b.TypeInto("spinbutton", "Tokens", "1000")
			b.TypeInto("textbox", "Reason", "First tokens")
			b.ClickOn("button", "Grant the tokens")
			seeRow(b, "Look", "1,000")
			lookAt(t, b, "operator-companies")

			openPart(b, "Settings", "Settings in force")
			b.TypeInto("searchbox", "Find a setting", "operators")
			seeRow(b, "operators", "anna@example.com", "environment")
			b.TypeInto("searchbox", "Find a setting", "smtp.password")
			seeRow(b, "smtp.password", "secret, set")
			b.TypeInto("searchbox", "Find a setting", "smtp")
			lookAt(t, b, "operator-settings")
			if strings.Contains(b.HTML(), key) {
				t.Error("the page has a secret in it")
			}
			if a := n.get("/api/v2/operator/settings", bearer(annaToken)...); strings.Contains(string(a.body), key) {
				t.Error("the service answers with a secret")
			}

			// Nobody else has the page.
			if other.Count("link", "Operator") != 0 {
				t.Error("somebody who is no operator has a link to the page")
			}
			other.Goto(n.url + "/operator/people")
			other.See("heading", "You are no operator of this installation")
			lookAt(t, other, "operator-refused")
			for _, part := range []string{"status", "runs", "people", "companies", "settings"} {
				n.get("/api/v2/operator/"+part, bearer(bertToken)...).want(t, 403)
			}

			wantNoComplaints(t, b)
			wantNoComplaints(t, other)
			s.check()
		})
	}
}
