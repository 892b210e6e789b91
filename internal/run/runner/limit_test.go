package runner_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// TestNodesShareTheLimitOfAnEngine has two nodes with slots for twice as many
// runs as the engine may have.
func TestNodesShareTheLimitOfAnEngine(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		const limit, runs = 2, 8
		e := newStuck()
		var now, most atomic.Int64
		counted := script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			for n := now.Add(1); ; {
				old := most.Load()
				if n <= old || most.CompareAndSwap(old, n) {
					break
				}
			}
			defer now.Add(-1)
			return e.Run(ctx, j, out)
		})
		share := func(p *runner.Parts) {
			p.Slots = map[string]engine.Slots{generationtest.Engine: {Engine: counted, Parallel: limit, Limit: limit}}
		}
		var made []run.Run
		for range runs {
			made = append(made, create(h, "cost", nil))
		}
		work(h, counted, share)
		work(h, counted, share)
		for range limit {
			receive(h, e.reached, "a run at the engine")
		}
		if n := h.Count(`SELECT count(*) FROM run WHERE stage = 'running'`); n != limit {
			h.Errorf("%d runs are running, want %d", n, limit)
		}
		close(e.free)
		for _, one := range made {
			if r := ended(h, one.ID); r.State != run.Succeeded {
				h.Errorf("run = %+v", r)
			}
		}
		if n := most.Load(); n != limit {
			h.Errorf("%d runs were at the engine at once, want %d", n, limit)
		}
	})
}

// TestRunsWaitForAPool that no worker serves, while its engine is in the
// settings of a node of another pool.
func TestRunsWaitForAPool(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		var log watch.Log
		cpu := build(h, paints, func(p *runner.Parts) {
			p.Slots = map[string]engine.Slots{"other": {Engine: paints, Parallel: 1, Pool: "cpu"}}
			p.Pools = map[string]string{"other": "cpu", generationtest.Engine: "gpu"}
			p.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		h.OK(cpu.Announce(h.Context()))
		made := create(h, "cost", nil)
		for range 3 {
			h.Pass(15 * time.Minute)
			h.OK(cpu.Announce(h.Context()))
			h.OK(cpu.GiveUpUnserved(h.Context()))
		}
		if got := h.Run(made.ID); got.State != run.Queued {
			h.Errorf("run = %+v, want it to wait for the pool", got)
		}
		if n := strings.Count(log.String(), "no worker serves the pool"); n != 1 || !strings.Contains(log.String(), "pool=gpu") {
			h.Errorf("log = %s, want one warning", log.String())
		}

		work(h, paints, func(p *runner.Parts) {
			p.Slots = map[string]engine.Slots{generationtest.Engine: {Engine: paints, Parallel: 1, Pool: "gpu"}}
			p.Pools = map[string]string{"other": "cpu", generationtest.Engine: "gpu"}
		})
		if r := ended(h, made.ID); r.State != run.Succeeded {
			h.Errorf("run = %+v", r)
		}
	})
}
