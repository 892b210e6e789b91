package companyadmin_test

import (
	"testing"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/budget"
	"atelier/internal/money/report"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/testkit/watch"
)

func TestBudgets(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		payer := w.role(c, w.fresh(), company.ManageBilling)
		before := w.seq()
		_, err := w.companies.Budgets.SetBudget(w.ctx(), payer, team, budget.Draft{Tokens: 500, Hard: true, WebhookURL: "https://studio.example/hook?key=secret"})
		w.ok(err)
		b, err := w.companies.Budgets.GetBudget(w.ctx(), payer, team)
		w.ok(err)
		if b.TeamID != team || b.Tokens != 500 || !b.Hard || b.WebhookURL != "https://studio.example/hook?key=secret" || b.Month != "2026-11" || b.Spent != 0 {
			w.Errorf("budget = %+v", b)
		}
		_, err = w.companies.Budgets.SetBudget(w.ctx(), payer, team, budget.Draft{})
		w.refused(err, fault.Invalid, "tokens")
		_, err = w.companies.Budgets.SetBudget(w.ctx(), payer, team, budget.Draft{Tokens: 1, WebhookURL: "https://127.0.0.1/"})
		w.refused(err, fault.Invalid, "webhook_url")
		w.ok(w.companies.Budgets.RemoveBudget(w.ctx(), payer, team))
		w.refused(w.companies.Budgets.RemoveBudget(w.ctx(), payer, team), fault.NotFound, "")
		_, err = w.companies.Budgets.GetBudget(w.ctx(), payer, team)
		w.refused(err, fault.NotFound, "")

		log := w.log(before)
		if len(log) != 2 || log[0].Act != audit.BudgetSet || log[0].CompanyID != c || log[0].ActorID != payer.PersonID || log[1].Act != audit.BudgetRemoved {
			w.Fatalf("log = %+v", log)
		}
		if d := log[0].Details; d["team"] != team || d["tokens"] != "500" || d["hard"] != "true" || len(d) != 5 { // an address may be a key
			w.Errorf("details = %v", d)
		}
	})
}

// TestBudgetsByPlugin: a member who sees a budget by a role in the team sees it
// only with apps that the role allows.
func TestBudgetsByPlugin(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		team := w.team(c)
		_, err := w.companies.Budgets.SetBudget(w.ctx(), operator, team, budget.Draft{Tokens: 1})
		w.ok(err)
		manager := w.teamRole(team, w.fresh(), "appless", company.ManageTeam)
		_, err = w.companies.Budgets.GetBudget(w.ctx(), manager, team)
		w.refused(err, fault.PluginNotAllowed, "")
		manager.Credential.Kind = principal.BrowserSession
		_, err = w.companies.Budgets.GetBudget(w.ctx(), manager, team)
		w.ok(err)
		w.role(c, manager, company.ManageBilling) // which is the company's
		manager.Credential.Kind = principal.IDToken
		_, err = w.companies.Budgets.GetBudget(w.ctx(), manager, team)
		w.ok(err)
	})
}

func TestBudgetsSetAtOnce(t *testing.T) {
	each(t, func(w fixture) {
		c := w.company("Fox")
		teams := []string{w.team(c), w.team(c)}
		dbtest.Together(8, func(i int) {
			if _, err := w.companies.Budgets.SetBudget(w.ctx(), operator, teams[i%2], budget.Draft{Tokens: int64(i + 1)}); err != nil {
				w.Error(err)
			}
		})
		for _, team := range teams {
			if _, err := w.companies.Budgets.GetBudget(w.ctx(), operator, team); err != nil {
				w.Error(err)
			}
		}
	})
}

// TestBudgetsAndTimeZonesLockInOneOrder: setting a budget and changing the time
// zone lock the rows of a company in one order.
func TestBudgetsAndTimeZonesLockInOneOrder(t *testing.T) {
	each(t, func(w fixture) {
		if w.db.Dialect.Name != "postgres" {
			return // there is one writer at a time
		}
		c := w.company("Fox")
		team := w.team(c)
		set := make(chan error)
		w.ok(w.db.Write(w.ctx(), func(tx *sqldb.Tx) error { // as ChangeCompany does
			if err := company.Lock(w.ctx(), tx, c); err != nil {
				return err
			}
			go func() {
				_, err := w.companies.Budgets.SetBudget(w.ctx(), operator, team, budget.Draft{Tokens: 1})
				set <- err
			}()
			watch.Until(w.T, "the budget to wait", func() (waits bool) {
				w.ok(w.db.QueryRow(w.ctx(), `SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`).Scan(&waits))
				return waits
			})
			if _, err := tx.Exec(w.ctx(), `SET LOCAL lock_timeout = '200ms'`); err != nil { // sooner than the database would notice
				return err
			}
			return report.SetZone(w.ctx(), tx, c, "Europe/Paris")
		}))
		w.ok(<-set)
	})
}
