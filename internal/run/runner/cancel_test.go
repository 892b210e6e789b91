package runner_test

import (
	"context"
	"sync/atomic"
	"testing"

	"atelier/internal/base/pubsub"
	"atelier/internal/engine"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// TestCancelHere has nobody look at the database now and then: the news alone
// must do.
func TestCancelHere(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		r := build(h, e, nil)
		made := create(h, "cost", nil)
		done := make(chan bool)
		go func() { done <- r.Step(h.Context(), generationtest.Engine) }()
		receive(h, e.reached, "the engine")
		_, was, err := h.Runs.CancelRun(h.Context(), generationtest.Own(made.PersonID), made.ID)
		if err != nil || was {
			h.Fatalf("cancel = %v, %v", was, err)
		}
		if !receive(h, done, "the end of the job") {
			h.Error("nothing was claimed")
		}
		if now := h.Run(made.ID); now.State != run.Cancelled || h.Balance(made.AccountID).Tokens != 100 {
			h.Errorf("run = %+v", now)
		}
	})
}

func TestCancelElsewhere(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		work(h, e, nil)
		made := create(h, "cost", nil)
		receive(h, e.reached, "the engine")
		h.Exec(`UPDATE run SET cancel = TRUE WHERE id = $1`, made.ID)
		if r := ended(h, made.ID); r.State != run.Cancelled || h.Balance(made.AccountID).Held != 0 {
			h.Errorf("run = %+v", r)
		}
	})
}

// TestCancelWhileItWaitsAgain cancels a run that its worker then hands back.
func TestCancelWhileItWaitsAgain(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		made := create(h, "cost", nil)
		h.Exec(`UPDATE run SET cancel = TRUE WHERE id = $1`, made.ID)
		called := false
		r := build(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			called = true
			return paints(ctx, j, out)
		}), nil)
		r.Step(h.Context(), generationtest.Engine)
		if now := h.Run(made.ID); now.State != run.Cancelled || called {
			h.Errorf("it is %s, the engine was called: %v", now.State, called)
		}
	})
}

// TestAnEngineThatIsDeaf is left alone, and what it makes later is nobody's.
func TestAnEngineThatIsDeaf(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		e.deaf = true
		late := make(chan error, 1)
		stop := work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			err := e.Run(ctx, j, out)
			late <- err
			return err
		}), nil)
		made := create(h, "many", nil)
		receive(h, e.reached, "the engine")
		_, _, err := h.Runs.CancelRun(h.Context(), generationtest.Own(made.PersonID), made.ID)
		h.OK(err)
		if r := ended(h, made.ID); r.State != run.Cancelled {
			h.Errorf("it is %s", r.State)
		}
		stop()
		close(e.free)
		if err := receive(h, late, "the engine's end"); err == nil {
			h.Error("what came after the end was taken")
		}
	})
}

// expireLease expires the lease of the first attempt at a run and has r find it.
// A worker that renews its lease in between keeps its run: then it expires again.
func expireLease(h *installation, r *runner.Runner, id string) {
	h.Helper()
	watch.Until(h.T, "the lease to expire", func() bool {
		h.Exec(`UPDATE run SET lease_until = 1 WHERE id = $1 AND attempt = 1 AND stage = 'running'`, id)
		h.OK(r.Reap(h.Context()))
		now := h.Run(id)
		return now.State != run.Running || now.Attempt > 1
	})
}

// TestALateWorker loses its run to another while it is asleep.
func TestALateWorker(t *testing.T) {
	for name, deaf := range map[string]bool{"that is told": false, "that is deaf": true} {
		t.Run(name, func(t *testing.T) {
			eachInstallation(t, func(h *installation) {
				asleep := newStuck()
				asleep.deaf = deaf
				var calls atomic.Int64
				late := work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
					if calls.Add(1) == 1 {
						return asleep.Run(ctx, j, out)
					}
					return paints(ctx, j, out) // it may be first to see that the run waits again
				}), nil)
				made := create(h, "many", nil)
				receive(h, asleep.reached, "the first worker")
				other := build(h, paints, func(p *runner.Parts) { p.Hub = pubsub.New() })
				start(h, other)
				expireLease(h, other, made.ID)
				r := ended(h, made.ID)
				files, rows := h.Owned(), h.Rows()
				if r.State != run.Succeeded || r.Attempt != 2 || r.TokensCharged != 4 {
					h.Errorf("run = %+v", r)
				}
				if deaf {
					close(asleep.free)
				}
				late() // its job is over by then
				if now := h.Run(made.ID); now.Revision != r.Revision || h.Rows() != rows || len(h.Owned()) != len(files) {
					h.Errorf("the late worker left a trace: %+v", now)
				}
				// It lives, so that its run was not lost with it.
				if n := h.Count(`SELECT count(*) FROM run_attempt WHERE run_id = $1 AND outcome = 'returned' AND attempt = 1`, made.ID); n != 1 {
					h.Errorf("%d attempts that were handed back, want 1", n)
				}
			})
		})
	}
}

// TestTakingBackOnesOwn has a worker that was asleep find its own run lost.
func TestTakingBackOnesOwn(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		r := build(h, e, nil)
		start(h, r)
		made := create(h, "many", nil)
		receive(h, e.reached, "the first attempt")
		expireLease(h, r, made.ID)
		receive(h, e.reached, "the second attempt")
		// The first is told that it is over; the second goes on.
		watch.Until(h.T, "one job", func() bool { return r.Busy() == 1 })
		close(e.free)
		if now := ended(h, made.ID); now.State != run.Succeeded || now.Attempt != 2 {
			h.Errorf("run = %+v", now)
		}
	})
}
