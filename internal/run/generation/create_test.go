package generation_test

import (
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/testkit/watch"
)

type installation = generationtest.Installation

var own, in = generationtest.Own, generationtest.In

// create tries to create a run.
func create(h *installation, d generation.Draft) (generation.Created, error) {
	return h.Runs.CreateRun(h.Context(), d)
}

// refused fails the test unless the error has the code.
func refused(h *installation, what string, err error, code fault.Code) *fault.Error {
	h.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		h.Fatalf("%s: %v, want %s", what, err, code)
	}
	return f
}

// TestOrderOfChecks takes the reasons for a refusal away one after the other.
// Whatever refuses leaves no trace.
func TestOrderOfChecks(t *testing.T) {
	generationtest.EachInstallation(t, nil, func(h *installation) {
		anna := h.Person(2)
		d := h.Draft(own(anna), "needs")
		d.Key, d.Fingerprint = "key", "print"
		d.Inputs = map[string]any{"prompt": strings.Repeat("x", 200_000), "other": "?"}
		d.Metadata = strings.Repeat("x", 8193)
		d.WebhookURL, d.Plugin = "http://example.com", strings.Repeat("x", 65)
		hash, id, no := d.ToolHash, d.ToolID, int64(-1)
		d.ToolHash, d.ToolID, d.NumResults = "v1:old", "none", &no
		for range 9 { // the rate has room for one more
			h.Create(h.Draft(own(anna), "free"))
		}
		step := func(what string, code fault.Code, mend func(*generation.Draft)) *fault.Error {
			h.Helper()
			before := h.Rows()
			_, err := create(h, d)
			f := refused(h, what, err, code)
			if after := h.Rows(); after != before {
				h.Errorf("%s: left %s, was %s", what, after, before)
			}
			mend(&d)
			return f
		}
		step("no such tool", fault.NotFound, func(d *generation.Draft) { d.ToolID = id })
		f := step("an old hash", fault.ToolSchemaStale, func(d *generation.Draft) { d.ToolHash = hash })
		if f.Details["expected_tool_fields_hash"] != hash {
			h.Errorf("details = %v, want %s", f.Details, hash)
		}
		f = step("bad inputs", fault.Invalid, func(d *generation.Draft) {
			d.Inputs, d.Metadata, d.WebhookURL, d.Plugin = map[string]any{"prompt": "child porn"}, strings.Repeat("x", 8192), "https://example.com/", strings.Repeat("ü", 64)
		})
		paths := map[string]bool{}
		for _, field := range f.Fields {
			paths[field.Path] = true
		}
		want := map[string]bool{"inputs.prompt": true, "inputs.other": true, "metadata": true, "webhook_url": true, "plugin": true}
		if !maps.Equal(paths, want) {
			h.Errorf("fields = %+v, want %v", f.Fields, want)
		}
		step("content", fault.ContentPolicyViolation, func(d *generation.Draft) { d.Inputs = map[string]any{"prompt": "a fox"} })
		h.Create(h.Draft(own(anna), "free")) // now ten go on, and the rate is used up
		f = step("too fast", fault.RateLimited, func(*generation.Draft) {})
		if f.RetryAfter != time.Minute {
			h.Errorf("retry after %v, want a minute", f.RetryAfter)
		}
		h.Pass(time.Minute)
		f = step("too many", fault.ActiveRunCap, func(*generation.Draft) {})
		if f.Details["active"] != int64(10) || f.Details["limit"] != 10 || f.RetryAfter <= 0 {
			h.Errorf("active cap = %#v", f)
		}
		one := h.Claim("worker")
		h.OK(h.Runs.EndRun(h.Context(), one, generation.Outcome{State: run.Cancelled}))
		f = step("too poor", fault.InsufficientBalance, func(*generation.Draft) { h.Give(anna, 1) })
		if f.Details["required"] != int64(3) || f.Details["available"] != int64(2) ||
			f.Message != `This run needs 3 tokens and your account has 2. Ask the operator of this installation for more; the command is "atelier admin grant".` {
			h.Errorf("balance = %v, %s", f.Details, f.Message)
		}
		if c, err := create(h, d); err != nil || c.Replayed {
			h.Errorf("with nothing wrong, and a key that was refused: %v", err)
		}
	})
}

func TestResultsAskedFor(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna := h.Person(1000)
		n := func(n int64) *int64 { return &n }
		for _, c := range []struct {
			slug  string
			asked *int64
			n     int64 // 0: refused
		}{
			{"many", nil, 1}, {"many", n(0), 0}, {"many", n(1), 1}, {"many", n(8), 8}, {"many", n(9), 0}, {"many", n(-1), 0},
			{"many", n(1 << 62), 0}, {"cost", nil, 1}, {"cost", n(5), 1}, {"cost", n(-5), 1},
		} {
			d := h.Draft(own(anna), c.slug)
			d.NumResults = c.asked
			before, free := h.Rows(), h.Balance(anna).Tokens
			created, err := create(h, d)
			if c.n == 0 {
				f := refused(h, c.slug, err, fault.NumResultsLimit)
				if f.Details["min"] != int64(1) || f.Details["max"] != int64(8) || h.Rows() != before {
					h.Errorf("%s of %d: %v", c.slug, *c.asked, f.Details)
				}
				continue
			}
			h.OK(err)
			r := h.Run(created.Run.ID)
			if unit := h.Tool(c.slug).Price.Tokens; r.NumResults != c.n || r.TokensHeld != c.n*unit || free-h.Balance(anna).Tokens != c.n*unit {
				h.Errorf("%s: %d results hold %d", c.slug, r.NumResults, r.TokensHeld)
			}
		}
	})
}

// TestRate has many begin runs at once, and one who waits as told.
func TestRate(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { s.ActiveRuns = 1000 }, func(h *installation) {
		anna := h.Person(0)
		team := h.Team(0)
		var accepted, rate atomic.Int64
		dbtest.Together(64, func(i int) {
			who := own(anna)
			if i%2 == 0 {
				who = in(anna, team)
			}
			_, err := create(h, h.Draft(who, "free"))
			switch f, _ := errors.AsType[*fault.Error](err); {
			case err == nil:
				accepted.Add(1)
			case f != nil && f.Code == fault.RateLimited && f.RetryAfter == time.Minute:
				rate.Add(1)
			default:
				h.Errorf("create: %v", err)
			}
		})
		if accepted.Load() != 10 || rate.Load() != 54 {
			h.Errorf("%d accepted and %d refused, want 10 and 54", accepted.Load(), rate.Load())
		}
		d := h.Draft(own(anna), "free")
		busy := func(want time.Duration) {
			h.Helper()
			err := h.Runs.CheckRate(h.Context(), anna)
			if want == 0 {
				h.OK(err)
			} else if f := refused(h, "busy", err, fault.RateLimited); f.RetryAfter != want {
				h.Errorf("wait %v, want %v", f.RetryAfter, want)
			}
		}
		h.Pass(time.Minute - time.Microsecond)
		busy(time.Microsecond)
		_, err := create(h, d)
		refused(h, "a moment too soon", err, fault.RateLimited)
		h.Pass(time.Microsecond)
		busy(0)
		c, err := create(h, d)
		h.OK(err)
		if len(c.Rooms) != 2 || c.Rooms[0].Left != 9 || c.Rooms[1].Left != 89 {
			h.Errorf("rooms = %+v", c.Rooms)
		}
		if h.OK(h.Runs.CheckRate(h.Context(), h.Person(0))); h.Failed() {
			h.Error("another is held up")
		}
		// The hour ends the day's work before the minute does.
		for n := 11; n < 100; n++ {
			h.Pass(6 * time.Second)
			h.Create(d)
		}
		h.Pass(6 * time.Second)
		_, err = create(h, d)
		f := refused(h, "the hour", err, fault.RateLimited)
		h.Pass(f.RetryAfter - time.Microsecond)
		_, err = create(h, d)
		refused(h, "the hour, a moment too soon", err, fault.RateLimited)
		h.Pass(time.Microsecond)
		h.Create(d)
	})
}

func TestRunsAtOnce(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { generationtest.Unlimited(s); s.ActiveRuns = 10 }, func(h *installation) {
		anna := h.Person(0)
		d := h.Draft(own(anna), "free")
		var accepted atomic.Int64
		dbtest.Together(32, func(int) {
			switch _, err := create(h, d); {
			case err == nil:
				accepted.Add(1)
			case !fault.Is(err, fault.ActiveRunCap):
				h.Errorf("create: %v", err)
			}
		})
		if accepted.Load() != 10 {
			h.Errorf("%d go on, want 10", accepted.Load())
		}
		if c, err := h.Runs.PriceDraft(h.Context(), d); err != nil || c.Blocked == "" {
			h.Errorf("price = %+v, %v", c, err)
		}
		h.Create(h.Draft(own(h.Person(0)), "free"))
		for _, e := range []generation.Outcome{
			{State: run.Succeeded, Results: h.Results(1)},
			{State: run.Failed, ErrorCode: "ENGINE_FAILED"},
			{State: run.Cancelled},
		} {
			r := h.Claim("worker")
			for r.PersonID != anna {
				r = h.Claim("worker")
			}
			_, err := create(h, d)
			refused(h, "while it runs", err, fault.ActiveRunCap)
			h.OK(h.Runs.EndRun(h.Context(), r, e))
			h.Create(d)
		}
	})
}

// TestASlotThatBecomesFree ends a run while a create waits for its turn. Who
// looks back at the times must not see both go on.
func TestASlotThatBecomesFree(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { s.ActiveRuns = 1 }, func(h *installation) {
		if h.DB.Dialect.Name != "postgres" {
			return // there, a write does not begin before the others have ended
		}
		anna := h.Person(0)
		first := h.Create(h.Draft(own(anna), "free"))
		worked := h.Claim("worker")
		d := h.Draft(own(anna), "free")
		second := make(chan generation.Created, 1)
		h.Do(func(tx *sqldb.Tx) error {
			if err := person.Lock(h.Context(), tx, anna); err != nil {
				return err
			}
			go func() {
				c, err := create(h, d)
				if err != nil {
					h.Errorf("create: %v", err)
				}
				second <- c
			}()
			watch.Until(h.T, "the create to wait", func() bool {
				return h.Count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == 1
			})
			h.Pass(time.Second)
			return h.Runs.EndRun(h.Context(), worked, generation.Outcome{State: run.Cancelled})
		})
		began, ended := h.Run((<-second).Run.ID).Created, h.Run(first.ID).Finished
		if began.Before(ended) {
			h.Errorf("it began at %v, %v before there was a place", began, ended.Sub(began))
		}
	})
}

// TestCreateSendsFewStatements counts the statements in the transaction of a
// create. docs/scaling.md names the number.
func TestCreateSendsFewStatements(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		var sent []string
		traced := newTraced(h, &sent)

		anna := h.Person(100)
		h.Create(h.Draft(own(anna), "many")) // the first one of a person creates rows
		sent = nil
		_, err := traced.CreateRun(h.Context(), h.Draft(own(anna), "many"))
		h.OK(err)
		if len(sent) != 11 {
			h.Errorf("a create sent %d statements, want 11: %q", len(sent), sent)
		}
	})
}
