package budget_test

import (
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/budget"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/testkit/watch"
)

func TestHardBudgetForThree(t *testing.T) {
	each(t, func(w fixture) {
		w.set(budget.Draft{Tokens: 3*20 + 19, Hard: true})
		people := []string{w.worker, w.Person(0), w.Person(0), w.Person(0)}
		d := w.draft(20)
		var accepted atomic.Int64
		dbtest.Together(32, func(i int) {
			d := d
			d.Principal = generationtest.In(people[i%len(people)], w.team)
			switch _, err := w.Runs.CreateRun(w.Context(), d); {
			case err == nil:
				accepted.Add(1)
			case !fault.Is(err, fault.InsufficientBalance):
				w.Errorf("create: %v", err)
			}
		})
		if b := w.Balance(w.team); accepted.Load() != 3 || b.Held != 60 {
			w.Errorf("%d accepted, balance %+v", accepted.Load(), b)
		}
	})
}

func TestHardBudget(t *testing.T) {
	each(t, func(w fixture) {
		blocked := func(price, left int64) {
			w.Helper()
			before := w.Rows()
			_, err := w.Runs.CreateRun(w.Context(), w.draft(price))
			f := refused(w, err, fault.InsufficientBalance)
			if f.Details["reason"] != "budget" || f.Details["required"] != price || f.Details["available"] != left || w.Rows() != before {
				w.Errorf("details = %v", f.Details)
			}
			if c, err := w.Runs.PriceDraft(w.Context(), w.draft(price)); err != nil || c.Blocked != f.Message {
				w.Errorf("price = %+v, %v", c, err)
			}
		}
		fits := func(price int64) {
			w.Helper()
			if c, err := w.Runs.PriceDraft(w.Context(), w.draft(price)); err != nil || c.Blocked != "" {
				w.Errorf("price = %+v, %v", c, err)
			}
		}
		w.set(budget.Draft{Tokens: 100, Hard: true})
		fits(100)
		blocked(250, 100)
		first := w.begin(50)
		second := w.Create(w.draft(30))
		blocked(25, 20)
		fits(20)
		w.OK(w.Runs.EndRun(w.Context(), second, generation.Outcome{State: run.Cancelled}))
		fits(50)
		w.succeed(first)
		blocked(79, 50) // what was held is spent now
		w.spend(50)
		blocked(1, 0)
		w.Create(w.Draft(generationtest.In(w.worker, w.team), "free"))
		w.Give(w.worker, 100)
		w.Create(w.Draft(generationtest.Own(w.worker), "t100"))

		w.set(budget.Draft{Tokens: 40, Hard: true}) // less than is spent already
		blocked(1, 0)
		w.set(budget.Draft{Tokens: 40})
		w.Create(w.draft(100)) // only told of
		w.set(budget.Draft{Tokens: 220, Hard: true})
		blocked(25, 20) // 100 are spent and 100 held
		w.Create(w.draft(20))
		w.Pass(16 * 24 * time.Hour)
		blocked(250, 100) // a new month, with what is still held
		w.Create(w.draft(100))
	})
}

func TestAllowanceIsNotBudget(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { generationtest.Unlimited(s); s.MonthlyAllowance = 4 }, func(h *generationtest.Installation) {
		team, anna := h.Team(100), h.Person(0)
		h.Do(func(tx *sqldb.Tx) error {
			_, err := h.Budgets.Set(h.Context(), tx, team, budget.Draft{Tokens: 2, Hard: true})
			return err
		})
		d := h.Draft(generationtest.In(anna, team), "cost") // 3 of the allowance, then 1 and 2 tokens
		h.Create(d)
		h.Create(d)
		_, err := h.Runs.CreateRun(h.Context(), d)
		if !fault.Is(err, fault.InsufficientBalance) {
			h.Errorf("create: %v", err)
		}
	})
}

// TestHardBudgetOfTheMonthInWhichTheWaitingEnds: a run that began before
// midnight, and waited until what others spent after it was counted, will be
// paid in the new month.
func TestHardBudgetOfTheMonthInWhichTheWaitingEnds(t *testing.T) {
	each(t, func(w fixture) {
		if w.DB.Dialect.Name != "postgres" {
			return // there is one writer at a time
		}
		w.set(budget.Draft{Tokens: 100, Hard: true})
		w.Give(w.worker, 1)
		w.Create(w.Draft(generationtest.Own(w.worker), "free")) // there is a row to wait for
		w.Claim("worker")
		other := w.Draft(generationtest.In(w.Person(0), w.team), "t100")
		w.Create(other)
		late := w.Claim("worker")
		w.Pass(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).Sub(w.Now()) - 1)
		d, waited := w.draft(1), make(chan error)
		w.Do(func(tx *sqldb.Tx) error {
			if _, err := tx.Exec(w.Context(), `UPDATE rate_key SET last = last`); err != nil {
				return err
			}
			go func() {
				_, err := w.Runs.CreateRun(w.Context(), d)
				waited <- err
			}()
			watch.Until(w.T, "the create to wait", func() bool {
				return w.Count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == 1
			})
			w.Pass(time.Second)
			w.succeed(late)
			return nil
		})
		refused(w, <-waited, fault.InsufficientBalance)
	})
}
