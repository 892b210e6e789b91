package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/internal/people/company"
	"atelier/internal/web/api/wire"
)

// TestBudgets sets a budget, spends it and reads what its webhook is told.
func TestBudgets(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		address, events := m.receive(http.StatusNoContent)
		m.work()
		c := m.site.Company("Fox", company.TeamPlan)
		team := m.site.Team(c, "Look <b>", "manager", "anna@example.com")
		m.grant("", team, 1000)
		payer, manager := m.signedIn("payer@example.com"), m.signedIn("manager@example.com")
		m.site.Admit(c, "payer@example.com", company.ManageBilling)
		m.site.Join(team, "manager@example.com", "manager")
		path, query := "/teams/"+team+"/budget", "?team_id="+team
		_, token := m.site.Token("anna@example.com", c)
		anna := m.as(token)

		payer.do(404, "GET", path, "")
		payer.do(404, "DELETE", path, "")
		b := as[wire.Budget](payer, 200, "PUT", path, `{"tokens":12}`)
		if b.TeamID != team || b.Tokens != 12 || b.Hard || b.WebhookURL != nil || b.Spent != 0 || b.Percent != 0 || b.ToldPercent != 0 || !b.Created.Equal(b.Updated) {
			t.Errorf("budget = %+v", b)
		}
		b = as[wire.Budget](payer, 200, "PUT", path, `{"tokens":12,"hard":true,"webhook_url":"`+address+`/budget"}`)
		if !b.Hard || b.WebhookURL == nil || *b.WebhookURL != address+"/budget" {
			t.Errorf("budget = %+v", b)
		}
		manager.do(403, "PUT", path, `{"tokens":1}`)
		manager.do(403, "DELETE", path, "")

		body := m.body("one", "") // for 3 tokens
		anna.done(query, body)
		anna.done(query, m.body("one", steps(`[{"fail":{}}]`)))
		anna.done(query, body)
		secret := getJSON[wire.WebhookSecret](anna.service, "/api/v2/webhook-secret"+query)
		hook, err := standard.NewWebhook(secret.Secret)
		if err != nil {
			t.Fatal(err)
		}
		hear := func(n int) (thresholds []int64) {
			for range n {
				e := <-events
				if err := hook.Verify(e.body, e.header); err != nil {
					t.Errorf("the signature: %v", err)
				}
				got := decodeAnswer[wire.BudgetEvent](t, answer{body: e.body})
				if got.Type != "budget.reached" || got.Timestamp.IsZero() || got.Data.CompanyID != c || got.Data.TeamID != team || got.Data.TeamName != "Look <b>" ||
					got.Data.Month != b.Month || got.Data.Tokens != 12 || got.Data.Spent*100 < got.Data.ThresholdPercent*12 {
					t.Errorf("the event is %s", e.body)
				}
				thresholds = append(thresholds, got.Data.ThresholdPercent)
			}
			slices.Sort(thresholds)
			return thresholds
		}
		if got := hear(1); !slices.Equal(got, []int64{50}) {
			t.Errorf("told %v", got)
		}
		if b := as[wire.Budget](manager, 200, "GET", path, ""); b.Spent != 6 || b.Percent != 50 || b.ToldPercent != 50 {
			t.Errorf("budget = %+v", b)
		}

		dear := m.body("many", `,"num_results":3`)
		a := anna.send("POST", "/api/v2/generate"+query, "application/json", strings.NewReader(dear)).checkStatus(t, "beyond the budget", 402, "INSUFFICIENT_BALANCE")
		var problem struct {
			Error struct {
				Details struct {
					Required, Available int64
					Reason              string
				}
			}
		}
		if err := json.Unmarshal(a.body, &problem); err != nil || problem.Error.Details.Required != 9 || problem.Error.Details.Available != 6 || problem.Error.Details.Reason != "budget" {
			t.Errorf("refused with %s", a.body)
		}
		preview := func(body string) wire.CostPreview {
			return decodeAnswer[wire.CostPreview](t, anna.send("POST", "/api/v2/generate/preview-cost"+query, "application/json", strings.NewReader(body)).checkStatus(t, "price", 200, ""))
		}
		if p := preview(dear); p.CanRun || p.BlockingReason == nil || !strings.Contains(*p.BlockingReason, "budget") {
			t.Errorf("price = %+v", p)
		}
		two := m.body("many", `,"num_results":2`)
		if p := preview(two); !p.CanRun {
			t.Errorf("price = %+v", p)
		}
		anna.done(query, m.body("many", `,"num_results":2,"inputs":{"script":"[{\"output\":{\"kind\":\"png\"}},{\"output\":{\"kind\":\"png\"}}]"}`))
		if got := hear(2); !slices.Equal(got, []int64{80, 100}) {
			t.Errorf("told %v", got)
		}
		payer.do(204, "DELETE", path, "")
		payer.do(404, "GET", path, "")
		anna.done(query, body)
	})
}

func TestBadBudgets(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		c := m.site.Company("Fox", company.TeamPlan)
		team := m.site.Team(c, "Look", "member")
		payer, stranger := m.signedIn("payer@example.com"), m.signedIn("stranger@example.com")
		m.site.Admit(c, "payer@example.com", company.ManageBilling)
		path := "/teams/" + team + "/budget"
		for body, field := range map[string]string{
			``:                                "",
			`[]`:                              "body",
			`{}`:                              "tokens",
			`{"tokens":null}`:                 "tokens",
			`{"tokens":0}`:                    "tokens",
			`{"tokens":-5}`:                   "tokens",
			`{"tokens":1.5}`:                  "tokens",
			`{"tokens":"5"}`:                  "tokens",
			`{"tokens":1000000000000001}`:     "tokens",
			`{"tokens":99999999999999999999}`: "tokens",
			`{"tokens":5,"hard":"yes"}`:       "hard",
			`{"tokens":5,"webhook_url":5}`:    "webhook_url",
			`{"tokens":5,"webhook_url":"http://studio.example/"}`:  "webhook_url",
			`{"tokens":5,"webhook_url":"https://localhost/"}`:      "webhook_url",
			`{"tokens":5,"webhook_url":"https://169.254.169.254"}`: "webhook_url",
		} {
			status := 400
			if body == "" {
				status = 415
			}
			a := payer.do(status, "PUT", path, body)
			if field != "" && !strings.Contains(string(a.body), `"`+field+`"`) {
				t.Errorf("%s: %s", body, a.body)
			}
		}
		payer.do(404, "GET", path, "")
		payer.do(200, "PUT", path, `{"tokens":1000000000000000,"hard":null,"webhook_url":null}`)
		for _, other := range []string{path, "/teams/AAAAAAAAAAAAAAAAAAAA/budget", "/teams/x/budget"} {
			stranger.do(404, "GET", other, "")
			stranger.do(404, "PUT", other, `{"tokens":5}`)
			stranger.do(404, "DELETE", other, "")
		}
	})
}
