package runner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/memory"
	"atelier/internal/engine"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
)

// greedy takes memory as its prompt says.
func greedy(bytes func(engine.Job) int64, inside chan<- string, gate <-chan struct{}) script {
	return func(ctx context.Context, j engine.Job, out engine.Sink) error {
		release, err := j.ReserveMemory(ctx, bytes(j))
		if err != nil {
			return err
		}
		defer release()
		inside <- j.RunID
		if bytes(j) > memory.LargeBytes {
			select {
			case <-gate:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return paints(ctx, j, out)
	}
}

// TestLargeRunsWaitOutside has one person's runs wait for memory: those of
// others go on at the same engine, and what is too large for ever fails.
func TestLargeRunsWaitOutside(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		const total = 400 << 20
		var mu sync.Mutex
		sizes := map[string]int64{}
		of := func(j engine.Job) int64 {
			mu.Lock()
			defer mu.Unlock()
			return sizes[j.RunID]
		}
		inside, gate := make(chan string, 20), make(chan struct{})
		r := build(h, greedy(of, inside, gate), func(p *runner.Parts) {
			p.Memory = memory.NewBudget(total)
			for name, one := range p.Slots {
				pool := one
				pool.Parallel = 1
				p.Slots[name] = pool
			}
		})
		make := func(bytes int64) run.Run {
			mu.Lock()
			defer mu.Unlock()
			made := create(h, "free", nil)
			sizes[made.ID] = bytes
			return made
		}
		var large []run.Run
		for range 5 {
			large = append(large, make(200<<20))
		}
		small, never := make(1<<20), make(300<<20)
		stop := start(h, r)
		if one := ended(h, small.ID); one.State != run.Succeeded {
			h.Errorf("a small run = %+v", one)
		}
		if one := ended(h, never.ID); one.State != run.Failed || one.ErrorCode != "ENGINE_FAILED" || !strings.Contains(one.ErrorText, "the limit is 250 MB") {
			h.Errorf("a run that never fits = %+v", one)
		}
		for range 2 { // the small one and one large one
			select {
			case <-inside:
			case <-time.After(2 * time.Minute):
				h.Fatal("a small and a large run should have their memory")
			}
		}
		if more := len(inside); more > 0 {
			h.Errorf("%d more runs have their memory, want none", more)
		}
		close(gate)
		for _, one := range large {
			if now := ended(h, one.ID); now.State != run.Succeeded {
				h.Errorf("a large run = %+v", now)
			}
		}
		// Those that wait are handed back at once when the worker stops.
		stop()
	})
}
