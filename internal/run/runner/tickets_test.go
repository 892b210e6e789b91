package runner_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"atelier/internal/base/pubsub"
	"atelier/internal/base/queue"
	"atelier/internal/engine"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// background runs something until the test ends.
func background(h *installation, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	h.Cleanup(func() { cancel(); <-done })
}

// TestTickets creates runs on a node that has no engines.
func TestTickets(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		if h.DB.Pool() == nil {
			return // one node has all
		}
		began := make(chan time.Time, 1)
		there := build(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			began <- time.Now()
			return paints(ctx, j, out)
		}), func(p *runner.Parts) { p.Hub = pubsub.New() })
		log := slog.New(slog.DiscardHandler)
		jobs, err := queue.Open(h.DB, queue.Options{Now: time.Now, Log: log})
		h.OK(err)
		background(h, func(ctx context.Context) { jobs.Run(ctx, []queue.Handler{there.TicketHandler()}) })
		start(h, there)
		sender, err := queue.Open(h.DB, queue.Options{Now: time.Now, Log: log})
		h.OK(err)
		here := runner.NewRelay(h.DB, sender, log, nil)
		background(h, here.Run)

		// Without tickets the other node finds a run when it looks, and does not
		// look again for a second. What begins well within that second was
		// told of by a ticket.
		for try := range 10 {
			h.Queued = func(string) {}
			untold := create(h, "free", nil)
			looked := receive(h, began, "the look")
			h.Queued = here.RelayQueued
			told := create(h, "free", nil)
			asked := time.Now()
			at := receive(h, began, "the ticket")
			ended(h, untold.ID)
			ended(h, told.ID)
			if at.Sub(looked) < 900*time.Millisecond && at.Sub(asked) < 200*time.Millisecond {
				h.Logf("begun %v after it was created, try %d", at.Sub(asked), try)
				return
			}
		}
		h.Error("no run was told of")
	})
}

func TestATicketThatIsNone(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		r := build(h, paints, nil)
		for _, args := range []string{"", `"`, `x`, `{}`} {
			if err := r.TicketHandler().Do(h.Context(), queue.Work{Args: []byte(args)}); err == nil {
				h.Errorf("%q was taken", args)
			}
		}
		h.OK(r.TicketHandler().Do(h.Context(), queue.Work{Args: []byte(`"other"`)}))
	})
}

// TestWhoIsTold counts the tickets for runs that this node can take itself.
func TestWhoIsTold(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		log := slog.New(slog.DiscardHandler)
		jobs, err := queue.Open(h.DB, queue.Options{Now: time.Now, Log: log})
		h.OK(err)
		takes := make(chan bool, 1)
		relay := runner.NewRelay(h.DB, jobs, log, func(engine string) bool { return <-takes })
		background(h, relay.Run)
		tickets := func() int64 {
			if h.DB.Pool() == nil {
				return h.Count(`SELECT count(*) FROM job WHERE kind = $1`, runner.TicketKind)
			}
			return h.Count(`SELECT count(*) FROM river_job WHERE kind = $1`, runner.TicketKind)
		}
		for _, take := range []bool{true, false, true, false} {
			takes <- take
			relay.RelayQueued(generationtest.Engine)
		}
		if h.DB.Pool() == nil {
			if n := tickets(); n != 0 {
				h.Errorf("%d tickets, though there is no other node", n)
			}
			return
		}
		watch.Until(h.T, "two tickets", func() bool { return tickets() == 2 })
	})
}
