package generation_test

import (
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

func TestBalanceForThree(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		team := h.Team(3*3 + 2)
		var accepted atomic.Int64
		people := []string{h.Person(100), h.Person(100), h.Person(100), h.Person(100)}
		dbtest.Together(64, func(i int) {
			_, err := create(h, h.Draft(in(people[i%4], team), "cost"))
			switch {
			case err == nil:
				accepted.Add(1)
			case !fault.Is(err, fault.InsufficientBalance):
				h.Errorf("create: %v", err)
			}
		})
		if b := h.Balance(team); accepted.Load() != 3 || b.Tokens != 2 || b.Held != 9 {
			h.Errorf("%d accepted, balance %+v", accepted.Load(), b)
		}
		for _, p := range people { // only who was selected pays
			if b := h.Balance(p); b.Tokens != 100 || b.Held != 0 {
				h.Errorf("balance of a person = %+v", b)
			}
		}
	})
}

func TestTheLastFreeResult(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { generationtest.Unlimited(s); s.MonthlyAllowance = 3 }, func(h *installation) {
		anna := h.Person(3 * 5)
		var accepted atomic.Int64
		dbtest.Together(16, func(int) {
			switch _, err := create(h, h.Draft(own(anna), "cost")); {
			case err == nil:
				accepted.Add(1)
			case !fault.Is(err, fault.InsufficientBalance):
				h.Errorf("create: %v", err)
			}
		})
		free := h.Count(`SELECT count(*) FROM run WHERE allowance_held = 3 AND tokens_held = 0 AND allowance_month = '2026-11'`)
		paid := h.Count(`SELECT count(*) FROM run WHERE allowance_held = 0 AND tokens_held = 3`)
		if accepted.Load() != 6 || free != 1 || paid != 5 {
			h.Errorf("%d accepted, %d free and %d paid, want 6, 1 and 5", accepted.Load(), free, paid)
		}
	})
}

func TestSpendingWindow(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna, bert, team := h.Person(0), h.Person(0), h.Team(100)
		who := in(anna, team)
		who.Role.Spend = &company.Spend{Tokens: 8, Window: time.Hour}
		d := h.Draft(who, "cost")
		blocked := func(left int64) {
			h.Helper()
			before := h.Rows()
			_, err := create(h, d)
			f := refused(h, "overspent", err, fault.InsufficientBalance)
			if f.Details["reason"] != "spending_window" || f.Details["required"] != int64(3) || f.Details["available"] != left || h.Rows() != before {
				h.Errorf("details = %v", f.Details)
			}
			if c, err := h.Runs.PriceDraft(h.Context(), d); err != nil || c.Blocked == "" {
				h.Errorf("price = %+v, %v", c, err)
			}
		}
		h.Create(h.Draft(own(anna), "free"))
		first := h.Create(d)
		h.Pass(time.Minute)
		h.Create(d)
		blocked(2)
		h.Create(h.Draft(in(bert, team), "cost")) // another's window
		h.OK(h.Runs.EndRun(h.Context(), first, generation.Outcome{State: run.Cancelled}))
		h.Create(d) // what was given back can be spent again
		blocked(2)
		h.Pass(time.Hour - time.Microsecond)
		blocked(2)
		h.Pass(time.Microsecond)
		h.Create(d)
		h.Create(d)
		blocked(2)

		dear := h.Draft(who, "many")
		eight := int64(8)
		dear.NumResults = &eight
		_, err := create(h, dear)
		refused(h, "more than the window ever has", err, fault.InsufficientBalance)
		var accepted atomic.Int64
		h.Pass(time.Hour)
		dbtest.Together(16, func(int) {
			if _, err := create(h, d); err == nil {
				accepted.Add(1)
			}
		})
		if accepted.Load() != 2 {
			h.Errorf("%d at once, want 2", accepted.Load())
		}
	})
}

// TestTooFewTokensSaysWhatToDo looks at what each kind of account is told.
func TestTooFewTokensSaysWhatToDo(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna, team := h.Person(0), h.Team(0)
		claims := h.Service(func(s *generation.Settings) { s.TopUp = 5 })
		for _, c := range []struct {
			runs *generation.Service
			who  principal.Principal
			want string
		}{
			{h.Runs, own(anna), `your account has 0. Ask the operator of this installation for more; the command is "atelier admin grant".`},
			{claims, own(anna), "your account has 0. Claim your free top-up if you have not yet, or ask the operator of this installation for more."},
			{claims, in(anna, team), "the team has 0. An admin of the team can ask the operator of this installation for more."},
		} {
			want := "This run needs 3 tokens and " + c.want
			d := h.Draft(c.who, "cost")
			_, err := c.runs.CreateRun(h.Context(), d)
			if f := refused(h, "create", err, fault.InsufficientBalance); f.Message != want {
				h.Errorf("create says %q, want %q", f.Message, want)
			}
			cost, err := c.runs.PriceDraft(h.Context(), d)
			h.OK(err)
			if cost.Blocked != want {
				h.Errorf("preview says %q, want %q", cost.Blocked, want)
			}
		}
	})
}
