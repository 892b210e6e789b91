package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"atelier/internal/engine"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

func TestMetrics(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		metrics := prometheus.NewRegistry()
		results := make(chan error, 2)
		results <- nil
		results <- errors.New("no")
		work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			if err := <-results; err != nil {
				return err
			}
			return paints(ctx, j, out)
		}), func(p *runner.Parts) { p.Metrics = metrics })
		for range 2 {
			ended(h, create(h, "free", nil).ID)
		}
		want := `
			# HELP atelier_runs_ended_total Attempts of runs that this node executed, by engine and outcome.
			# TYPE atelier_runs_ended_total counter
			atelier_runs_ended_total{engine="ENGINE",outcome="cancelled"} 0
			atelier_runs_ended_total{engine="ENGINE",outcome="elsewhere"} 0
			atelier_runs_ended_total{engine="ENGINE",outcome="failed"} 1
			atelier_runs_ended_total{engine="ENGINE",outcome="succeeded"} 1
			# HELP atelier_runs_running Runs that this node is executing, by engine.
			# TYPE atelier_runs_running gauge
			atelier_runs_running{engine="ENGINE"} 0
		`
		want = strings.ReplaceAll(want, "ENGINE", generationtest.Engine)
		compare := func() error {
			return testutil.GatherAndCompare(metrics, strings.NewReader(want), "atelier_runs_ended_total", "atelier_runs_running")
		}
		watch.Until(h.T, "the counts", func() bool { return compare() == nil })
	})
}
