package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/file/library"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// busyServer is an engine whose server has a queue of its own. A job reports
// the positions that the test sends, and works when the channel is closed.
type busyServer struct {
	positions chan int
	left      chan error // receives the cause with which a job left the queue early
}

func newBusyServer() *busyServer {
	return &busyServer{positions: make(chan int), left: make(chan error, 10)}
}

func (s *busyServer) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	out.Progress(0)
	out.Queued(0)
	for {
		select {
		case position, waits := <-s.positions:
			if !waits {
				out.Progress(0.5)
				return paints(ctx, j, out)
			}
			out.Queued(position)
		case <-ctx.Done():
			s.left <- context.Cause(ctx)
			return ctx.Err()
		}
	}
}

// status returns a run as the API shows it.
func status(h *installation, r run.Run) generation.RunJSON {
	h.Helper()
	rec, err := h.Runs.GetStatus(h.Context(), r.AccountID, r.ID)
	h.OK(err)
	return rec.RunJSON(library.URLSigner{}, r.PersonID)
}

// waitsAt waits until the API shows that a run waits at a position of its
// server's queue. The position 0 is shown as unknown.
func waitsAt(h *installation, r run.Run, position int64) generation.RunJSON {
	h.Helper()
	var now generation.RunJSON
	watch.Until(h.T, "the position in the server's queue", func() bool {
		now = status(h, r)
		if h.Run(r.ID).ServerPosition == nil || now.Stage == nil || *now.Stage != "queued" {
			return false
		}
		return position == 0 && now.QueuePosition == nil || now.QueuePosition != nil && *now.QueuePosition == position
	})
	return now
}

// TestWaitingAtTheServer has a run wait for longer than its tool may work. The
// wait is shown, and is no part of any time that is measured.
func TestWaitingAtTheServer(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newBusyServer()
		work(h, e, nil)
		begun := time.Now()
		made := create(h, "brief", nil) // may work for four seconds
		for _, position := range []int64{0, 7, 2} {
			if position > 0 {
				e.positions <- int(position)
			}
			now := waitsAt(h, made, position)
			if now.Progress != nil || now.Started != nil || now.Status != run.Pending {
				h.Errorf("at %d: progress %v, started %v, status %s", position, now.Progress, now.Started, now.Status)
			}
			if want := min(max(position, 1)*2, 10); now.RetryAfterSeconds != want {
				h.Errorf("at %d: retry_after_seconds = %d, want %d", position, now.RetryAfterSeconds, want)
			}
		}
		time.Sleep(time.Until(begun.Add(5 * time.Second))) // the time itself is what is tested
		close(e.positions)
		r := ended(h, made.ID)
		if r.State != run.Succeeded || r.ServerPosition != nil {
			h.Fatalf("%s: %s, server position %v", r.State, r.ErrorText, r.ServerPosition)
		}
		if waited := r.Started.Sub(made.Created); waited < 4500*time.Millisecond || waited > time.Since(begun) {
			h.Errorf("the start is %v after the creation, want it later by the wait", waited)
		}
		if ms := h.Count(`SELECT coalesce(sum(ms_per_result), -1) FROM tool_duration WHERE tool_id = $1`, r.ToolID); ms < 0 || ms > 4000 {
			h.Errorf("the run counts as %d ms, want it without the wait", ms)
		}
	})
}

// TestWaitingOverTries has an engine fail temporarily after a wait: neither the
// wait of the first try nor that of the second counts as work.
func TestWaitingOverTries(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		waits := script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			out.Queued(1)
			select {
			case <-time.After(4200 * time.Millisecond): // longer than the tool may work
			case <-ctx.Done():
				return ctx.Err()
			}
			if j.Try == 0 {
				return engine.FailTransient(engine.Failed, "Once more.")
			}
			out.Progress(0)
			return paints(ctx, j, out)
		})
		work(h, waits, func(p *runner.Parts) { p.Retry = []time.Duration{time.Millisecond} })
		if r := ended(h, create(h, "brief", nil).ID); r.State != run.Succeeded {
			h.Errorf("%s %s: %s", r.State, r.ErrorCode, r.ErrorText)
		}
	})
}

// TestWorkAfterAWaitIsLimited has an engine work for too long after a wait.
func TestWorkAfterAWaitIsLimited(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		work(h, script(func(ctx context.Context, _ engine.Job, out engine.Sink) error {
			out.Queued(1)
			out.Progress(0)
			<-ctx.Done()
			return ctx.Err()
		}), nil)
		r := ended(h, create(h, "quick", nil).ID)
		if r.State != run.Failed || r.ErrorCode != "TIMED_OUT" || !strings.Contains(r.ErrorText, "longer than 1s") {
			h.Errorf("%s %s: %s", r.State, r.ErrorCode, r.ErrorText)
		}
	})
}

// TestTheWaitIsLimited has a server whose queue never ends.
func TestTheWaitIsLimited(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newBusyServer()
		work(h, e, func(p *runner.Parts) { p.QueueTimeout = 700 * time.Millisecond })
		made := create(h, "cost", nil)
		r := ended(h, made.ID)
		if r.State != run.Failed || r.ErrorCode != "TIMED_OUT" || !strings.Contains(r.ErrorText, "waited for more than 700ms") || r.TokensCharged != 0 {
			h.Errorf("%s %s: %s, charged %d", r.State, r.ErrorCode, r.ErrorText, r.TokensCharged)
		}
		if b := h.Balance(made.AccountID); b.Tokens != 100 || b.Held != 0 {
			h.Errorf("balance = %+v", b)
		}
		if why := receive(h, e.left, "the engine to leave"); why == nil || errors.Is(why, engine.ErrHandedOver) {
			h.Errorf("the engine was stopped with %v, want a cause after which it cancels its work", why)
		}
		if shown := status(h, r); shown.Error == nil || !shown.Error.Retryable || shown.Stage != nil || shown.QueuePosition != nil {
			h.Errorf("shown = %+v", shown)
		}
	})
}

func TestCancelWhileItWaitsAtTheServer(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newBusyServer()
		e.left = make(chan error) // the engine leaves, and its worker ends the run, only after the answer to the cancel was read
		work(h, e, nil)
		made := create(h, "cost", nil)
		e.positions <- 4
		waitsAt(h, made, 4)
		rec, was, err := h.Runs.CancelRun(h.Context(), generationtest.Own(made.PersonID), made.ID)
		if err != nil || was || rec.State.IsEnded() {
			h.Errorf("cancel = %v, %v, %v; want a run that its worker ends", rec.State, was, err)
		}
		if why := receive(h, e.left, "the engine to leave"); errors.Is(why, engine.ErrHandedOver) {
			h.Errorf("the engine was stopped with %v, want a cause after which it cancels its work", why)
		}
		if r := ended(h, made.ID); r.State != run.Cancelled || h.Balance(made.AccountID).Tokens != 100 {
			h.Errorf("run = %+v", r)
		}
	})
}

// TestAWorkerThatStopsHandsTheWaitOver has the worker stop while its run waits:
// the run is queued again, and has not started.
func TestAWorkerThatStopsHandsTheWaitOver(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newBusyServer()
		stop := work(h, e, func(p *runner.Parts) { p.Drain = time.Millisecond })
		made := create(h, "cost", nil)
		e.positions <- 3
		waitsAt(h, made, 3)
		stop()
		if why := receive(h, e.left, "the engine to leave"); !errors.Is(why, engine.ErrHandedOver) {
			h.Errorf("the engine was stopped with %v, want it handed over", why)
		}
		if r := h.Run(made.ID); r.State != run.Queued || r.ServerPosition != nil || !r.Started.IsZero() {
			h.Errorf("run = %+v, want one that is queued and has not started", r)
		}
		close(e.positions)
		work(h, e, nil)
		if r := ended(h, made.ID); r.State != run.Succeeded || r.Attempt != 2 || r.Started.IsZero() {
			h.Errorf("run = %+v", r)
		}
	})
}

// probed is an engine whose server never answers a probe.
type probed struct{ script }

func (probed) Probe(context.Context) error { return engine.FailTransient(engine.Unavailable, "Away.") }

// TestAServerThatGoesAwayAfterAWait has the server go away after a run has
// waited in its queue for longer than the tool may work: the run waits for the
// server, because it has not worked for that long.
func TestAServerThatGoesAwayAfterAWait(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		const wait = 4200 * time.Millisecond // longer than the tool may work
		r := build(h, probed{func(ctx context.Context, _ engine.Job, out engine.Sink) error {
			out.Queued(1)
			time.Sleep(wait)
			h.Pass(wait)
			return engine.FailTransient(engine.Unavailable, "Away.")
		}}, nil)
		made := create(h, "brief", nil)
		r.Step(h.Context(), generationtest.Engine)
		if now := h.Run(made.ID); now.State != run.Queued {
			h.Errorf("%s %s: %s, want a run that waits for its server", now.State, now.ErrorCode, now.ErrorText)
		}
	})
}
