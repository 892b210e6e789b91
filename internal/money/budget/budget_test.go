package budget_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/budget"
	"atelier/internal/money/report"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/testkit/watch"
)

func TestThresholds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		steps []int64
		told  [][]int64 // after each
		mails []int
	}{
		{"one by one", []int64{49, 1, 29, 1, 19, 1, 100}, [][]int64{{}, {50}, {50}, {50, 80}, {50, 80}, {50, 80, 100}, {50, 80, 100}}, []int{0, 1, 1, 2, 2, 3, 3}},
		{"two at once", []int64{49, 40, 25}, [][]int64{{}, {50, 80}, {50, 80, 100}}, []int{0, 1, 2}},
		{"all at once", []int64{100, 1}, [][]int64{{50, 80, 100}, {50, 80, 100}}, []int{1, 1}},
		{"far beyond", []int64{250}, [][]int64{{50, 80, 100}}, []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(w fixture) {
				w.plan(100)
				var sum int64
				for i, price := range c.steps {
					w.spend(price)
					sum += price
					highest := int64(0)
					if n := len(c.told[i]); n > 0 {
						highest = c.told[i][n-1]
					}
					if got := w.told(); !slices.Equal(got, c.told[i]) || len(w.mails()) != c.mails[i] {
						w.Errorf("at %d: told %v with %d mails, want %v with %d", sum, got, len(w.mails()), c.told[i], c.mails[i])
					}
					if b := w.of(); b.Spent != sum || b.Percent != sum || b.Alerted != highest || b.Month != "2026-11" || b.TeamID != w.team {
						w.Errorf("at %d: budget = %+v", sum, b)
					}
				}
			})
		})
	}
}

func TestWhatIsSaid(t *testing.T) {
	each(t, func(w fixture) {
		var woken atomic.Int64
		w.Ended = func() { woken.Add(1) }
		w.Exec(`UPDATE team SET name = $1 WHERE id = $2`, "Look\u202e\nde", w.team)
		w.set(budget.Draft{Tokens: 120, WebhookURL: hook, Hard: true})
		w.spend(100)
		if woken.Load() != 1 {
			w.Errorf("the sender was woken %d times", woken.Load())
		}
		want := budget.Alert{
			CompanyID:        w.company,
			TeamID:           w.team,
			TeamName:         "Look\u202e\nde",
			Month:            "2026-11",
			ThresholdPercent: 50,
			Tokens:           120,
			Spent:            100,
		}
		got := w.alerts()
		if len(got) != 2 || got[0].Data != want || got[1].Data.ThresholdPercent != 80 || got[0].Type != "budget.reached" || !got[0].Timestamp.Equal(w.Now().Truncate(time.Second)) {
			w.Errorf("alerts = %+v", got)
		}
		all := w.mails()
		if len(all) != 1 {
			w.Fatalf("mails = %+v", all)
		}
		m := all[0]
		if m.To != "boss@example.com" || m.Subject != "80 % of the budget of Look��de is spent" {
			w.Errorf("mail to %s about %q", m.To, m.Subject)
		}
		for _, part := range []string{"“Look��de” of “Fox” has spent 100 of the 120 tokens of its budget for 2026-11. That is 83 %.", "would exceed it are refused", "https://atelier.example"} {
			if !strings.Contains(m.Text, part) {
				w.Errorf("%q is not in %s", part, m.Text)
			}
		}
		w.spend(20)
		if m := w.mails()[1]; !strings.Contains(m.Text, "until the month ends") {
			w.Errorf("mail = %s", m.Text)
		}
	})
}

func TestWithoutAWebhookThereIsMail(t *testing.T) {
	each(t, func(w fixture) {
		w.set(budget.Draft{Tokens: 100})
		w.spend(50)
		if n := w.Count(`SELECT count(*) FROM webhook_event`); n != 0 || len(w.mails()) != 1 {
			w.Errorf("%d events, %d mails", n, len(w.mails()))
		}
		if m := w.mails()[0]; strings.Contains(m.Text, "refused") {
			w.Errorf("mail = %s", m.Text)
		}
	})
}

func TestRunsThatFailTellNothing(t *testing.T) {
	each(t, func(w fixture) {
		w.plan(100)
		w.OK(w.Runs.EndRun(w.Context(), w.begin(100), generation.Outcome{State: run.Failed, ErrorCode: "ENGINE_ERROR"}))
		w.OK(w.Runs.EndRun(w.Context(), w.Create(w.draft(100)), generation.Outcome{State: run.Cancelled}))
		free := w.Create(w.Draft(generationtest.In(w.worker, w.team), "free"))
		w.Claim("worker")
		w.succeed(w.Run(free.ID))
		if b := w.of(); b.Spent != 0 || len(w.told()) != 0 || len(w.mails()) != 0 {
			w.Errorf("budget = %+v, told %v", b, w.told())
		}
	})
}

func TestOthersDoNotCount(t *testing.T) {
	each(t, func(w fixture) {
		w.plan(100)
		other := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (company.Team, error) {
			return company.CreateTeam(w.Context(), tx, w.company, "Other")
		})
		w.Give(other.ID, 1000)
		w.Give(w.worker, 1000)
		for _, who := range []principal.Principal{generationtest.In(w.worker, other.ID), generationtest.Own(w.worker)} {
			w.Create(w.Draft(who, "t100"))
			w.succeed(w.Claim("worker"))
		}
		if b := w.of(); b.Spent != 0 || len(w.mails()) != 0 {
			w.Errorf("budget = %+v", b)
		}
	})
}

func TestANewMonthBeginsByTheCompanysClock(t *testing.T) {
	each(t, func(w fixture) {
		zone := func(name string) {
			w.Do(func(tx *sqldb.Tx) error { return report.SetZone(w.Context(), tx, w.company, name) })
		}
		zone("Pacific/Auckland") // where December begins at 11:00 UTC
		w.plan(100)
		w.spend(50)
		w.Pass(time.Date(2026, 11, 30, 11, 0, 0, 0, time.UTC).Sub(w.Now()) - time.Microsecond)
		w.spend(20)
		if b := w.of(); b.Month != "2026-11" || b.Spent != 70 || b.Alerted != 50 {
			w.Errorf("at the end of the month: %+v", b)
		}
		w.Pass(time.Microsecond)
		if b := w.of(); b.Month != "2026-12" || b.Spent != 0 || b.Percent != 0 || b.Alerted != 0 {
			w.Errorf("when the next begins: %+v", b)
		}
		w.spend(49)
		if got := w.told(); !slices.Equal(got, []int64{50}) {
			w.Errorf("told %v", got)
		}
		w.spend(1)
		all := w.alerts()
		if len(all) != 2 || all[1].Data.Month != "2026-12" || all[1].Data.Spent != 50 || len(w.mails()) != 2 {
			w.Errorf("alerts = %+v", all)
		}
		zone("UTC") // it is November again, for a while
		w.spend(250)
		if b := w.of(); b.Month != "2026-11" || len(w.told()) != 2 {
			w.Errorf("when the clock is put back: %+v, told %v", b, w.told())
		}
		w.plan(200)
		if len(w.told()) != 2 {
			w.Errorf("told %v", w.told())
		}
		w.Pass(24 * time.Hour)
		w.spend(1)
		if got := w.told(); !slices.Equal(got, []int64{50, 50}) {
			w.Errorf("told %v", got)
		}
	})
}

func TestSetting(t *testing.T) {
	each(t, func(w fixture) {
		w.spend(50)
		if b := w.plan(100); b.Alerted != 50 || b.Spent != 50 || b.Percent != 50 || b.Tokens != 100 || b.WebhookURL != hook || b.Hard || !b.Created.Equal(w.Now()) || !b.Updated.Equal(w.Now()) {
			w.Errorf("half spent: %+v", b)
		}
		steps := []struct {
			name  string
			plan  int64 // or
			spend int64
			told  []int64 // sorted, ever
			now   int64
		}{
			{"the same again", 100, 0, []int64{50}, 50},
			{"lower tells of what is above", 60, 0, []int64{50, 80}, 80},
			{"higher takes back what is not reached", 1000, 0, []int64{50, 80}, 0},
			{"and lower again tells again", 100, 0, []int64{50, 50, 80}, 50},
			{"spent", 0, 30, []int64{50, 50, 80, 80}, 80},
			{"a little higher", 120, 0, []int64{50, 50, 80, 80}, 50},
			{"spent on", 0, 40, []int64{50, 50, 80, 80, 80, 100}, 100},
			{"tiny", 1, 0, []int64{50, 50, 80, 80, 80, 100}, 100},
		}
		for _, s := range steps {
			mails := len(w.mails())
			before := len(w.told())
			if s.plan > 0 {
				w.Pass(time.Second)
				w.plan(s.plan)
			} else {
				w.spend(s.spend)
			}
			b, got := w.of(), w.told()
			if b.Alerted != s.now || !slices.Equal(got, s.told) {
				w.Errorf("%s: told %v, now %d", s.name, got, b.Alerted)
			}
			if news := len(got) > before; (len(w.mails()) == mails+1) != news || len(w.mails()) > mails+1 {
				w.Errorf("%s: %d mails more", s.name, len(w.mails())-mails)
			}
		}
		if b := w.of(); !b.Created.Before(b.Updated) || b.Percent != 12000 {
			w.Errorf("budget = %+v", b)
		}
	})
}

func TestRemoving(t *testing.T) {
	each(t, func(w fixture) {
		remove := func() error {
			return w.Try(func(tx *sqldb.Tx) error { return budget.Remove(w.Context(), tx, w.team) })
		}
		refused(w, remove(), fault.NotFound)
		w.plan(100)
		w.OK(remove())
		refused(w, remove(), fault.NotFound)
		w.spend(100)
		if err := w.Try(func(tx *sqldb.Tx) error { _, err := budget.Of(w.Context(), tx, w.team); return err }); !fault.Is(err, fault.NotFound) || len(w.told()) != 0 {
			w.Errorf("of = %v, told %v", err, w.told())
		}
	})
}

func TestBadInput(t *testing.T) {
	each(t, func(w fixture) {
		for _, c := range []struct {
			name   string
			draft  budget.Draft
			fields []string
		}{
			{"nothing", budget.Draft{}, []string{"tokens"}},
			{"below zero", budget.Draft{Tokens: -1}, []string{"tokens"}},
			{"too much", budget.Draft{Tokens: 1e15 + 1}, []string{"tokens"}},
			{"plain http", budget.Draft{Tokens: 1, WebhookURL: "http://example.com/"}, []string{"webhook_url"}},
			{"no address", budget.Draft{Tokens: 1, WebhookURL: "example"}, []string{"webhook_url"}},
			{"within", budget.Draft{Tokens: 1, WebhookURL: "https://10.0.0.1/"}, []string{"webhook_url"}},
			{"with a password", budget.Draft{Tokens: 1, WebhookURL: "https://a:b@example.com/"}, []string{"webhook_url"}},
			{"a low port", budget.Draft{Tokens: 1, WebhookURL: "https://example.com:22/"}, []string{"webhook_url"}},
			{"too long", budget.Draft{Tokens: 1, WebhookURL: "https://example.com/" + strings.Repeat("a", 2048)}, []string{"webhook_url"}},
			{"both", budget.Draft{WebhookURL: "x"}, []string{"tokens", "webhook_url"}},
		} {
			_, err := w.try(c.draft)
			var fields []string
			for _, f := range refused(w, err, fault.Invalid).Fields {
				fields = append(fields, f.Path)
			}
			if !slices.Equal(fields, c.fields) {
				w.Errorf("%s: problems with %v, want %v", c.name, fields, c.fields)
			}
		}
		if n := w.Count(`SELECT count(*) FROM budget`); n != 0 {
			w.Errorf("%d budgets are kept", n)
		}
		if b := w.plan(1e15); b.Tokens != 1e15 {
			w.Errorf("budget = %+v", b)
		}
		for _, id := range []string{"", "x", w.company} {
			refused(w, w.Try(func(tx *sqldb.Tx) error {
				_, err := w.Budgets.Set(w.Context(), tx, id, budget.Draft{Tokens: 1})
				return err
			}), fault.NotFound)
		}
	})
}

func TestWhoGetsMail(t *testing.T) {
	each(t, func(w fixture) {
		w.Do(func(tx *sqldb.Tx) error {
			for name, perms := range map[string][]company.Permission{"payer": {company.ManageBilling}, "people": {company.ManageMembers, company.ManageTeams}} {
				if err := company.SetRole(w.Context(), tx, w.company, company.Role{Name: name, Permissions: perms}); err != nil {
					return err
				}
			}
			return nil
		})
		w.join("payer@example.com", "payer", "")
		w.join("people@example.com", "people", "member")
		w.join("manager@example.com", "member", "manager")
		w.join("member@example.com", "member", "member")
		w.join("both@example.com", "admin", "manager")
		for what, column := range map[string]string{
			"unverified": "email_verified = FALSE", "suspended": "suspended = TRUE", "deleted": "deleted = 1", "odd": "email = 'no address'",
		} {
			id := w.join(what+"@example.com", "admin", "manager")
			w.Exec(`UPDATE person SET `+column+` WHERE id = $1`, id)
		}
		w.plan(100)
		w.spend(50)
		var to []string
		for _, m := range w.mails() {
			to = append(to, m.To)
		}
		slices.Sort(to)
		if want := []string{"boss@example.com", "both@example.com", "manager@example.com", "payer@example.com"}; !slices.Equal(to, want) {
			w.Errorf("mail to %v, want %v", to, want)
		}
		for i := range 110 {
			w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, $2, TRUE, '', 1)`, fmt.Sprintf("m%03d", i), fmt.Sprintf("m%03d@example.com", i))
			w.Exec(`INSERT INTO company_member (company_id, person_id, role, created) VALUES ($1, $2, 'admin', 1)`, w.company, fmt.Sprintf("m%03d", i))
		}
		before := len(w.mails())
		w.spend(30)
		if got := len(w.mails()) - before; got != 100 {
			w.Errorf("%d mails, want 100", got)
		}
	})
}

func TestRunsOfARemovedTeamStillEnd(t *testing.T) {
	each(t, func(w fixture) {
		w.set(budget.Draft{Tokens: 100, WebhookURL: hook, Hard: true})
		r := w.begin(100)
		w.Do(func(tx *sqldb.Tx) error { return company.RemoveTeam(w.Context(), tx, w.team) })
		w.succeed(r)
		if len(w.told()) != 0 || len(w.mails()) != 0 {
			w.Errorf("told %v", w.told())
		}
	})
}

func TestEachIsToldOnceHoweverRunsEnd(t *testing.T) {
	each(t, func(w fixture) {
		w.plan(200)
		var all []run.Run
		for range 8 {
			all = append(all, w.begin(25))
		}
		dbtest.Together(len(all), func(i int) { w.succeed(all[i]) })
		if got := w.told(); !slices.Equal(got, []int64{50, 80, 100}) {
			w.Errorf("told %v", got)
		}
		for _, a := range w.alerts() {
			if a.Data.Spent*100 < a.Data.ThresholdPercent*200 {
				w.Errorf("alert = %+v", a)
			}
		}
		if s := w.subjects(); len(s) != 3 {
			w.Errorf("mails: %v", s)
		}
	})
}

func TestABudgetMissesNoRunThatEndsMeanwhile(t *testing.T) {
	each(t, func(w fixture) {
		for i := range 8 {
			r := w.begin(50)
			dbtest.Together(2, func(who int) {
				if who == 0 {
					w.succeed(r)
				} else {
					w.plan(int64(50 * (i + 1)))
				}
			})
			if b := w.of(); b.Alerted != 100 || b.Percent != 100 {
				w.Errorf("budget = %+v", b)
			}
			w.Do(func(tx *sqldb.Tx) error { return budget.Remove(w.Context(), tx, w.team) })
		}
	})
}

// TestRunsThatEndOnBothSidesOfMidnight add to sums of two days, and what they
// reach together is told.
func TestRunsThatEndOnBothSidesOfMidnight(t *testing.T) {
	each(t, func(w fixture) {
		if w.DB.Dialect.Name != "postgres" {
			return // there is one writer at a time
		}
		w.plan(100)
		all := []run.Run{w.begin(25), w.begin(25)}
		w.Pass(w.Now().Truncate(24*time.Hour).Add(24*time.Hour).Sub(w.Now()) - 1)
		var ended sync.WaitGroup
		w.Do(func(tx *sqldb.Tx) error {
			// Both get as far as to the money.
			if _, err := tx.Exec(w.Context(), `UPDATE ledger_account SET posted = posted WHERE id = $1`, w.team); err != nil {
				return err
			}
			for i, r := range all {
				ended.Go(func() { w.succeed(r) })
				watch.Until(w.T, "the run to wait", func() bool {
					return w.Count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == int64(i+1)
				})
				w.Pass(time.Second)
			}
			return nil
		})
		ended.Wait()
		if got := w.told(); !slices.Equal(got, []int64{50}) {
			w.Errorf("told %v", got)
		}
	})
}

// TestNoBudgetCostsOneLook counts what is asked of the database.
func TestNoBudgetCostsOneLook(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := dbtest.URL(t, engine)
			dbtest.OpenAt(t, url, time.Now)
			var asked []string
			db, err := sqldb.Open(t.Context(), url, sqldb.Options{MaxConns: 4, Now: time.Now, Trace: func(query string, _ []any) { asked = append(asked, query) }})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var k budget.Service
			for name, act := range map[string]func(tx *sqldb.Tx) error{
				"charged": func(tx *sqldb.Tx) error { return k.CheckThresholds(t.Context(), tx, "team") },
				"left": func(tx *sqldb.Tx) error {
					_, limited, err := budget.Left(t.Context(), tx, "team", tx.Now)
					if limited {
						t.Error("a team without a budget is limited")
					}
					return err
				},
			} {
				asked = nil
				if err := db.Write(t.Context(), act); err != nil || len(asked) != 1 {
					t.Errorf("%s: %v, asked %q", name, err, asked)
				}
			}
		})
	}
}

func TestChecksSeeWhatIsWrong(t *testing.T) {
	each(t, func(w fixture) {
		w.plan(100)
		w.spend(79)
		for damage, want := range map[string]string{
			`UPDATE budget SET month = '2026-13'`:                   "a budget has a valid month",
			`UPDATE budget SET month = '2026-00'`:                   "a budget has a valid month",
			`UPDATE budget SET month = 'November'`:                  "a budget has a valid month",
			`UPDATE budget SET month = '2026.11'`:                   "a budget has a valid month",
			`UPDATE budget SET tokens = 1000000000000001, told = 0`: "the tokens of a budget are within the limits",
			`UPDATE budget SET webhook_url = 'http://a.example'`:    "the webhook of a budget uses https",
			`UPDATE budget SET told = 80`:                           "alerts were sent only for thresholds that the team has reached",
			`UPDATE budget SET tokens = 159`:                        "alerts were sent only for thresholds that the team has reached",
			`UPDATE budget SET updated = created - 1`:               "a budget was not changed before it was created",
		} {
			found := w.Damage(budget.Checks, damage)
			if len(found) != 1 || !found[want] {
				w.Errorf("%s\nfound %v, want %q", damage, found, want)
			}
		}
	})
}

func TestWhoMovesTheRowTells(t *testing.T) {
	each(t, func(w fixture) {
		w.plan(1000)
		w.spend(250)
		for range 4 {
			w.Exec(`UPDATE budget SET tokens = 250, told = 0`)
			before := len(w.told())
			dbtest.Together(8, func(int) {
				w.Do(func(tx *sqldb.Tx) error { return w.Budgets.CheckThresholds(w.Context(), tx, w.team) })
			})
			if n := len(w.told()) - before; n != 3 {
				w.Errorf("%d were told, want 3", n)
			}
		}
	})
}
