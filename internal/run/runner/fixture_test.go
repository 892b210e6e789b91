package runner_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

type installation = generationtest.Installation

// script is an engine whose work is a function of the test.
type script func(ctx context.Context, j engine.Job, out engine.Sink) error

func (s script) Run(ctx context.Context, j engine.Job, out engine.Sink) error { return s(ctx, j, out) }

// picture passes one result to the sink.
func picture(ctx context.Context, out engine.Sink, n int) error {
	return out.Output(ctx, engine.Result{Data: bytes.NewReader(generationtest.PNG(n))})
}

// paints makes all results.
var paints script = func(ctx context.Context, j engine.Job, out engine.Sink) error {
	for i := range j.NumResults {
		if err := picture(ctx, out, i); err != nil {
			return err
		}
	}
	return nil
}

// stuck is an engine that reports which jobs reached it, and waits until the
// test releases it or the job's context ends.
type stuck struct {
	reached chan string
	free    chan struct{}
	deaf    bool // the engine ignores the end of its context
}

func newStuck() *stuck { return &stuck{reached: make(chan string, 100), free: make(chan struct{})} }

func (s *stuck) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	s.reached <- j.RunID
	done := ctx.Done()
	if s.deaf {
		done, ctx = nil, context.WithoutCancel(ctx)
	}
	select {
	case <-s.free:
		return paints(ctx, j, out)
	case <-done:
		return ctx.Err()
	}
}

func eachInstallation(t *testing.T, fn func(h *installation)) {
	t.Helper()
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		fn(h)
		h.Tidy()
	})
}

// build returns a runner with one engine. h notifies it of queued runs.
func build(h *installation, e engine.Engine, change func(*runner.Parts)) *runner.Runner {
	p := runner.Parts{
		DB: h.DB, Blobs: h.Blobs, Intake: h.Intake, Catalog: h.Catalog, Runs: h.Runs, Hub: h.Hub, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Slots:    map[string]engine.Slots{generationtest.Engine: {Engine: e, Parallel: 4}},
		Settings: runner.Settings{Lease: 30 * time.Second, Attempts: 3, MaxWait: time.Hour, Drain: time.Minute, OutputBytes: 1 << 16},
	}
	if change != nil {
		change(&p)
	}
	r := runner.New(p)
	h.Queued = func(engine string) { r.NoticeQueued(engine) }
	return r
}

// start runs a runner until stop is called, which waits for its end.
func start(h *installation, r *runner.Runner) (stop func()) {
	h.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				h.Errorf("run: %v", err)
			}
		case <-time.After(time.Minute):
			h.Error("the runner does not end")
		}
		if n := r.Busy(); n != 0 {
			h.Errorf("%d jobs are left", n)
		}
	})
	h.Cleanup(stop)
	return stop
}

// work starts a runner with an engine.
func work(h *installation, e engine.Engine, change func(*runner.Parts)) (stop func()) {
	h.Helper()
	return start(h, build(h, e, change))
}

// ended waits for the end of a run.
func ended(h *installation, id string) run.Run {
	h.Helper()
	watch.Until(h.T, "the end of the run", func() bool { return h.Run(id).State.IsEnded() })
	return h.Run(id)
}

// create creates a run of a new person with 100 tokens.
func create(h *installation, slug string, change func(*generation.Draft)) run.Run {
	h.Helper()
	d := h.Draft(generationtest.Own(h.Person(100)), slug)
	if change != nil {
		change(&d)
	}
	return h.Create(d)
}

func receive[T any](h *installation, ch <-chan T, what string) (v T) {
	h.Helper()
	select {
	case v = <-ch:
	case <-time.After(time.Minute):
		h.Fatalf("waited in vain for %s", what)
	}
	return v
}
