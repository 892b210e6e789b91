package generation_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

// TestWhatARunCosts settles runs of four results for 2 tokens each.
func TestWhatARunCosts(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { generationtest.Unlimited(s); s.MonthlyAllowance = 3 }, func(h *installation) {
		failed := generation.Outcome{State: run.Failed, ErrorCode: "ENGINE_FAILED", ErrorText: "It broke."}
		for _, c := range []struct {
			name    string
			ending  generation.Outcome
			results int
			tokens  int64 // charged beyond the allowance
			free    int64
		}{
			{"all", generation.Outcome{State: run.Succeeded}, 4, 5, 3},
			{"all but one", generation.Outcome{State: run.Succeeded}, 3, 3, 3},
			{"one", generation.Outcome{State: run.Succeeded}, 1, 0, 2},
			{"none", failed, 0, 0, 0},
			{"cancelled", generation.Outcome{State: run.Cancelled}, 0, 0, 0},
		} {
			anna := h.Person(10)
			d := h.Draft(own(anna), "many")
			n := int64(4)
			d.NumResults, d.WebhookURL = &n, "https://example.com/"
			created := h.Create(d)
			if created.TokensHeld != 5 || created.AllowanceHeld != 3 {
				h.Errorf("%s: held %d and %d", c.name, created.TokensHeld, created.AllowanceHeld)
			}
			r := h.Claim("worker")
			c.ending.Results, c.ending.Took = h.Results(c.results), 8*time.Second
			events := 0
			h.Ended = func() { events++ }
			h.OK(h.Runs.EndRun(h.Context(), r, c.ending))
			now := h.Run(r.ID)
			if now.State != c.ending.State || now.TokensCharged != c.tokens || now.AllowanceUsed != c.free || now.ErrorCode != c.ending.ErrorCode || now.ErrorText != c.ending.ErrorText {
				h.Errorf("%s: %+v", c.name, now)
			}
			if b := h.Balance(anna); b != (ledger.Balance{Tokens: 10 - c.tokens}) {
				h.Errorf("%s: balance = %+v", c.name, b)
			}
			if n := h.Count(`SELECT count(*) FROM result WHERE run_id = $1 AND account_id = $2 AND shape = '1:1' AND resolution = '1K'`, r.ID, anna); n != int64(c.results) {
				h.Errorf("%s: %d results", c.name, n)
			}
			if n := h.Count(`SELECT count(*) FROM webhook_event WHERE run_id = $1`, r.ID); n != 1 || events != 1 {
				h.Errorf("%s: %d events, told %d times", c.name, n, events)
			}
			if c.results > 0 {
				if n := h.Count(`SELECT ms_per_result FROM tool_duration ORDER BY finished DESC, ms_per_result LIMIT 1`); n != 8000/int64(c.results) {
					h.Errorf("%s: %d ms each", c.name, n)
				}
			}
			before := h.Rows()
			for _, again := range []generation.Outcome{c.ending, failed, {State: run.Cancelled}} {
				again.Results = nil
				if again.State == run.Succeeded {
					again.Results = h.Results(1)
				}
				if err := h.Runs.EndRun(h.Context(), r, again); !errors.Is(err, generation.ErrNotHeld) {
					h.Errorf("%s, then %s: %v", c.name, again.State, err)
				}
				for _, one := range again.Results {
					h.Intake.DiscardFiles(h.Context(), one.StoredFile)
				}
			}
			// Whether the first try came through is not known to who tries again
			// with the same files: they must not be dropped.
			if c.results > 0 {
				if err := h.Runs.EndRun(h.Context(), r, c.ending); err == nil || errors.Is(err, generation.ErrNotHeld) {
					h.Errorf("%s, the same again: %v", c.name, err)
				}
			}
			if h.Rows() != before || fmt.Sprint(h.Run(r.ID)) != fmt.Sprint(now) {
				h.Errorf("%s: an end after the end left a trace", c.name)
			}
			h.Pass(time.Second)
		}
		h.Tidy()
	})
}

// TestMistakesOfWorkers ends runs with results that there cannot be.
func TestMistakesOfWorkers(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := h.Person(10)
		h.Create(h.Draft(own(anna), "many"))
		r := h.Claim("worker")
		before := h.Rows()
		for _, e := range []generation.Outcome{
			{State: run.Succeeded},
			{State: run.Succeeded, Results: h.Results(3)},
			{State: run.Cancelled, Results: h.Results(1)},
			{State: run.Failed, ErrorCode: "ENGINE_FAILED", Results: h.Results(1)},
		} {
			if err := h.Runs.EndRun(h.Context(), r, e); err == nil || errors.Is(err, generation.ErrNotHeld) {
				h.Errorf("%s with %d results: %v", e.State, len(e.Results), err)
			}
		}
		if h.Rows() != before {
			h.Error("a mistake left a trace")
		}
		h.OK(h.Runs.EndRun(h.Context(), r, generation.Outcome{State: run.Succeeded, Results: h.Results(2)}))
	})
}

// TestEndingAtOnce has many say how a run ended.
func TestEndingAtOnce(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := h.Person(10)
		d := h.Draft(own(anna), "many")
		d.WebhookURL = "https://example.com/"
		h.Create(d)
		r := h.Claim("worker")
		endings := make([]generation.Outcome, 12)
		for i := range endings {
			endings[i] = generation.Outcome{State: run.Cancelled}
			if i%2 == 0 {
				endings[i] = generation.Outcome{State: run.Succeeded, Results: h.Results(2)}
			}
		}
		var ended atomic.Int64
		dbtest.Together(len(endings), func(i int) {
			switch err := h.Runs.EndRun(h.Context(), r, endings[i]); {
			case err == nil:
				ended.Add(1)
			case errors.Is(err, generation.ErrNotHeld):
				for _, one := range endings[i].Results {
					h.Intake.DiscardFiles(h.Context(), one.StoredFile)
				}
			default:
				h.Errorf("end: %v", err)
			}
		})
		if n := h.Count(`SELECT count(*) FROM ledger_transaction WHERE run_id = $1`, r.ID); ended.Load() != 1 || n != 1 {
			h.Errorf("ended %d times with %d settlements", ended.Load(), n)
		}
		if n := h.Count(`SELECT count(*) FROM webhook_event`); n != 1 {
			h.Errorf("%d events", n)
		}
		h.Tidy()
	})
}

func TestRunsWithoutAWebhookHaveNoEvent(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		h.Ended = func() { h.Error("somebody was told of an event") }
		h.Create(h.Draft(own(h.Person(0)), "free"))
		h.OK(h.Runs.EndRun(h.Context(), h.Claim("worker"), generation.Outcome{State: run.Succeeded, Results: h.Results(1)}))
		if n := h.Count(`SELECT count(*) FROM webhook_event`); n != 0 {
			h.Errorf("%d events", n)
		}
	})
}

// TestPriceIsWhatIsHeld compares what a run is said to cost with what it holds.
func TestPriceIsWhatIsHeld(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	generationtest.EachInstallation(t, func(s *generation.Settings) { generationtest.Unlimited(s); s.MonthlyAllowance = 5 }, func(h *installation) {
		for _, c := range []struct {
			slug   string
			asked  *int64
			tokens int64 // of the account
			want   generation.Cost
		}{
			{"free", nil, 0, generation.Cost{}},
			{"cost", nil, 0, generation.Cost{FreeAllowance: 3, PerResult: 3}},
			{"many", n(2), 0, generation.Cost{FreeAllowance: 4, PerResult: 2}},
			{"many", n(3), 1, generation.Cost{Tokens: 1, FreeAllowance: 5, PerResult: 2}},
			{"many", n(3), 0, generation.Cost{Tokens: 1, FreeAllowance: 5, PerResult: 2, Blocked: `This run needs 1 token and your account has 0. Ask the operator of this installation for more; the command is "atelier admin grant".`}},
			{"many", n(8), 10, generation.Cost{Tokens: 11, FreeAllowance: 5, PerResult: 2, Blocked: `This run needs 11 tokens and your account has 10. Ask the operator of this installation for more; the command is "atelier admin grant".`}},
			{"many", n(8), 11, generation.Cost{Tokens: 11, FreeAllowance: 5, PerResult: 2}},
		} {
			anna := h.Person(c.tokens)
			d := h.Draft(own(anna), c.slug)
			d.NumResults = c.asked
			before := h.Rows()
			got, err := h.Runs.PriceDraft(h.Context(), d)
			if err != nil || got != c.want {
				h.Errorf("%s: price = %+v, %v, want %+v", c.slug, got, err, c.want)
			}
			if h.Rows() != before {
				h.Errorf("%s: a price left a trace", c.slug)
			}
			created, err := create(h, d)
			if c.want.Blocked != "" {
				refused(h, c.slug, err, fault.InsufficientBalance)
				continue
			}
			h.OK(err)
			if r := h.Run(created.Run.ID); r.TokensHeld != got.Tokens || r.AllowanceHeld != got.FreeAllowance || r.UnitTokens != got.PerResult {
				h.Errorf("%s: holds %d and %d", c.slug, r.TokensHeld, r.AllowanceHeld)
			}
		}
		anna := h.Person(100)
		d := h.Draft(own(anna), "needs")
		if c, err := h.Runs.PriceDraft(h.Context(), d); err != nil || c.Blocked != "" {
			h.Errorf("without a required input: %+v, %v", c, err)
		}
		_, err := create(h, d)
		refused(h, "without a required input", err, fault.Invalid)
		d.Principal.TeamID = h.Team(0) // with a role that allows nothing
		if c, err := h.Runs.PriceDraft(h.Context(), d); err != nil || c.Blocked == "" || c.FreeAllowance != 3 {
			h.Errorf("for who may not: %+v, %v", c, err)
		}
		d.ToolHash = "v1:old"
		_, err = h.Runs.PriceDraft(h.Context(), d)
		refused(h, "an old hash", err, fault.ToolSchemaStale)
	})
}

// TestAChangeOnAnotherNode is not yet in this node's memory when somebody
// creates.
func TestAChangeOnAnotherNode(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := h.Person(10)
		d := h.Draft(own(anna), "cost")
		h.ApplyElsewhere(map[string]string{"cost": "price: {type: COST, tokens: 5}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"})
		before := h.Rows()
		_, err := create(h, d)
		live := refused(h, "the old price", err, fault.ToolSchemaStale).Details["expected_tool_fields_hash"]
		h.ApplyElsewhere(map[string]string{"free": generationtest.Manifest("free")})
		_, err = create(h, d)
		refused(h, "a tool that is gone", err, fault.NotFound)
		if live == d.ToolHash || h.Rows() != before {
			h.Errorf("live hash %v, rows %s, then %s", live, before, h.Rows())
		}
	})
}

// TestThePriceOfTheHash changes a price between the look and the create.
func TestThePriceOfTheHash(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := h.Person(10)
		d := h.Draft(own(anna), "cost")
		old := h.Create(d)
		h.Apply(map[string]string{"cost": "price: {type: COST, tokens: 5}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"})
		before := h.Rows()
		_, err := create(h, d)
		if f := refused(h, "the old price", err, fault.ToolSchemaStale); f.Details["expected_tool_fields_hash"] != h.Tool("cost").Hash || h.Rows() != before {
			h.Errorf("details = %v", f.Details)
		}
		if now := h.Create(h.Draft(own(anna), "cost")); now.TokensHeld != 5 || h.Run(old.ID).TokensHeld != 3 {
			h.Errorf("held %d", now.TokensHeld)
		}
	})
}

// TestNobodyWaitsForACompanyThatIsChanged: counting a company's days anew takes
// its time, with the company locked and those who end runs waiting. Runs begin
// and end without the company's row: who begins one holds the account, for
// which others wait that end one, for whom the count waits.
func TestNobodyWaitsForACompanyThatIsChanged(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		if h.DB.Dialect.Name != "postgres" {
			return // there is one writer at a time
		}
		companyID := h.Company()
		anna, team := h.Person(0), h.TeamOf(companyID, 100)
		h.Do(func(tx *sqldb.Tx) error {
			if err := company.Lock(h.Context(), tx, companyID); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(h.Context(), 10*time.Second)
			defer cancel()
			if _, err := h.Runs.CreateRun(ctx, h.Draft(generationtest.In(anna, team), "cost")); err != nil {
				return fmt.Errorf("begin: %w", err)
			}
			if err := h.Runs.EndRun(ctx, h.Claim("worker"), generation.Outcome{State: run.Succeeded, Results: h.Results(1)}); err != nil {
				return fmt.Errorf("end: %w", err)
			}
			return nil
		})
	})
}
