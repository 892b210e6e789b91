package budget_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/budget"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue/mailqueuetest"
	"atelier/internal/people/company"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

const hook = "https://127.0.0.1:8443/budget"

// prices are the prices of the tools; the name of a tool is t and its price.
var prices = []int64{1, 19, 20, 25, 29, 30, 40, 49, 50, 79, 100, 250}

// fixture is a company with a team that has many tokens, a person who runs tools
// in it, and a person who receives alerts about its budget.
type fixture struct {
	*generationtest.Installation
	company, team, worker string
}

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *generationtest.Installation) {
		tools := map[string]string{"free": generationtest.Manifest("free")}
		for _, p := range prices {
			n := strconv.FormatInt(p, 10)
			tools["t"+n] = "price: {type: COST, tokens: " + n + "}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"
		}
		h.Apply(tools)
		w := fixture{Installation: h, worker: h.Person(0)}
		h.Do(func(tx *sqldb.Tx) error {
			c, err := company.Create(h.Context(), tx, "Fox", company.TeamPlan)
			if err != nil {
				return err
			}
			team, err := company.CreateTeam(h.Context(), tx, c.ID, "Look")
			w.company, w.team = c.ID, team.ID
			return err
		})
		h.Give(w.team, 1_000_000)
		w.join("boss@example.com", company.RoleAdmin, "")
		fn(w)
	})
}

// join creates a person with a role in the company, and with a role in the team
// unless teamRole is empty.
func (w fixture) join(email, role, teamRole string) (personID string) {
	w.Helper()
	personID = w.Person(0)
	w.Exec(`UPDATE person SET email = $2, email_key = $2 WHERE id = $1`, personID, email)
	w.Do(func(tx *sqldb.Tx) error {
		if _, err := company.SetMember(w.Context(), tx, w.company, personID, role); err != nil || teamRole == "" {
			return err
		}
		_, err := company.SetTeamMember(w.Context(), tx, w.team, personID, teamRole, company.Added)
		return err
	})
	return personID
}

func (w fixture) try(d budget.Draft) (b budget.Budget, err error) {
	err = w.Try(func(tx *sqldb.Tx) error { b, err = w.Budgets.Set(w.Context(), tx, w.team, d); return err })
	return b, err
}

func (w fixture) set(d budget.Draft) budget.Budget {
	w.Helper()
	b, err := w.try(d)
	w.OK(err)
	return b
}

// plan sets a budget with a webhook.
func (w fixture) plan(tokens int64) budget.Budget {
	w.Helper()
	return w.set(budget.Draft{Tokens: tokens, WebhookURL: hook})
}

func (w fixture) of() budget.Budget {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (budget.Budget, error) { return budget.Of(w.Context(), tx, w.team) })
}

// draft returns a draft of a run with a price.
func (w fixture) draft(price int64) generation.Draft {
	w.Helper()
	return w.Draft(generationtest.In(w.worker, w.team), "t"+strconv.FormatInt(price, 10))
}

// begin starts a run with a price.
func (w fixture) begin(price int64) run.Run {
	w.Helper()
	w.Create(w.draft(price))
	return w.Claim("worker")
}

func (w fixture) succeed(r run.Run) {
	w.Helper()
	w.OK(w.Runs.EndRun(w.Context(), r, generation.Outcome{State: run.Succeeded, Results: w.Results(1)}))
}

// spend makes runs with these prices succeed, one after the other.
func (w fixture) spend(prices ...int64) {
	w.Helper()
	for _, p := range prices {
		w.succeed(w.begin(p))
	}
}

// alerts returns the events of the webhook, in the order of the thresholds of a
// month.
func (w fixture) alerts() (all []budget.Event) {
	w.Helper()
	bodies := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]string, error) {
		return sqldb.All(w.Context(), tx, `SELECT body FROM webhook_event WHERE account_id = $1 AND url = $2 AND run_id IS NULL`, []any{w.team, hook},
			func(row sqldb.Scanner) (s string, err error) { return s, row.Scan(&s) })
	})
	for _, body := range bodies {
		var a budget.Event
		w.OK(json.Unmarshal([]byte(body), &a))
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b budget.Event) int {
		if a.Data.Month != b.Data.Month {
			return int(a.Timestamp.Sub(b.Timestamp))
		}
		return int(a.Data.ThresholdPercent - b.Data.ThresholdPercent)
	})
	return all
}

// told returns the thresholds of the alerts.
func (w fixture) told() []int64 {
	w.Helper()
	all := []int64{}
	for _, a := range w.alerts() {
		all = append(all, a.Data.ThresholdPercent)
	}
	return all
}

// mails returns the messages in the queue, oldest first.
func (w fixture) mails() []mail.Message {
	w.Helper()
	return mailqueuetest.Queued(w, w.DB, w.MailBox)
}

// subjects returns the subjects of the mails so far.
func (w fixture) subjects() []string {
	w.Helper()
	all := []string{}
	for _, m := range w.mails() {
		all = append(all, m.Subject)
	}
	return all
}

func refused(w fixture, err error, code fault.Code) *fault.Error {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		w.Fatalf("error = %v, want %s", err, code)
	}
	return f
}
