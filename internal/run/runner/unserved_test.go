package runner_test

import (
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// missing is a tool whose engine nobody has.
const missing = `price: {type: COST, tokens: 5}
output: {type: IMG, mime_types: [image/png]}
engine: {name: imgae}
`

// had lets somebody say that they have an engine, who is gone then.
func had(h *installation, names ...string) {
	h.Helper()
	h.OK(h.DB.Write(h.Context(), func(tx *sqldb.Tx) error { return run.ReportServed(h.Context(), tx, names) }))
}

// TestAnEngineThatNobodyHas fails its runs at once and takes nothing for them.
func TestAnEngineThatNobodyHas(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		h.Apply(map[string]string{"missing": missing})
		work(h, paints, nil)
		watch.Until(h.T, "the runner says what it has", func() bool { return h.Count(`SELECT count(*) FROM engine_served`) == 1 })
		began := time.Now()
		made := create(h, "missing", nil)
		r := ended(h, made.ID)
		if r.State != run.Failed || r.ErrorCode != string(engine.Unavailable) || r.TokensCharged != 0 {
			h.Errorf("run = %+v", r)
		}
		watch.Took(h, "the failure", time.Since(began), 4*time.Second) // less than between two looks for lost runs
		if b := h.Balance(made.AccountID); b.Tokens != 100 || b.Held != 0 {
			h.Errorf("balance = %+v, want all 100 tokens back", b)
		}
	})
}

// TestANodeThatRestarts has its runs wait, until it has been gone for long and
// somebody could have seen it all that time.
func TestANodeThatRestarts(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		h.Apply(map[string]string{"missing": missing})
		had(h, "imgae")
		r := build(h, paints, nil)
		h.OK(r.Announce(h.Context()))
		made := create(h, "missing", nil)
		for _, pass := range []time.Duration{0, 9 * time.Minute} {
			h.Pass(pass)
			h.OK(r.GiveUpUnserved(h.Context()))
			if got := h.Run(made.ID); got.State != run.Queued {
				h.Errorf("after %v: %+v, want it to wait", pass, got)
			}
		}

		// A runner that has just begun does not know who comes back.
		fresh := build(h, paints, nil)
		h.Pass(2 * time.Minute)
		h.OK(fresh.Announce(h.Context()))
		h.OK(fresh.GiveUpUnserved(h.Context()))
		if got := h.Run(made.ID); got.State != run.Queued {
			h.Errorf("for a runner that has just begun: %+v, want it to wait", got)
		}

		h.OK(r.GiveUpUnserved(h.Context()))
		if got := h.Run(made.ID); got.State != run.Failed || got.ErrorCode != string(engine.Unavailable) {
			h.Errorf("after 11 minutes: %+v", got)
		}
	})
}

// TestWhoTakesRunsHasTheirEngine although they never said so, as nodes of an older
// release do.
func TestWhoTakesRunsHasTheirEngine(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		create(h, "cost", nil)
		h.Claim("an older node")
		made := create(h, "cost", nil)
		other := build(h, paints, func(p *runner.Parts) {
			p.Slots = map[string]engine.Slots{"other": {Engine: paints, Parallel: 1}}
		})
		h.OK(other.Announce(h.Context()))
		h.Pass(time.Minute)
		h.OK(other.GiveUpUnserved(h.Context()))
		if got := h.Run(made.ID); got.State != run.Queued {
			h.Errorf("run = %+v, want it to wait for the older node", got)
		}
	})
}
