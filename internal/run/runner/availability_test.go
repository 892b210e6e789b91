package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// server is an engine whose server can be away.
type server struct {
	script
	away   atomic.Bool
	begun  atomic.Int64 // runs
	probed atomic.Int64
}

func (s *server) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	s.begun.Add(1)
	if s.away.Load() {
		return engine.FailTransient(engine.Unavailable, "Nobody is there.")
	}
	return s.script(ctx, j, out)
}

func (s *server) Probe(context.Context) error {
	s.probed.Add(1)
	if s.away.Load() {
		return errors.New("nobody is there")
	}
	return nil
}

func quickProbes(p *runner.Parts) { p.Probe = 20 * time.Millisecond }

// watchEngines lets the service know who is away.
func watchEngines(h *installation) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	done := make(chan struct{})
	go func() { defer close(done); h.Runs.WatchAvailability(ctx) }()
	h.Cleanup(func() { cancel(); <-done })
}

// TestRunsWaitForTheirServer lets a run find nobody: it waits, its people are
// told to ask less often, and it is done when the server is back.
func TestRunsWaitForTheirServer(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		s := &server{script: paints}
		s.away.Store(true)
		watchEngines(h)
		work(h, s, quickProbes)
		made := create(h, "cost", nil)
		watch.Until(h.T, "somebody says that the server is away", func() bool {
			rec, err := h.Runs.GetStatus(h.Context(), made.AccountID, made.ID)
			h.OK(err)
			return rec.State == run.Queued && rec.RetryAfter == 10*time.Second
		})
		before := s.begun.Load()
		again := create(h, "cost", nil)
		if again.PollAfter != 10*time.Second {
			h.Errorf("a run that is created now is polled every %v, want 10s", again.PollAfter)
		}
		// Whoever was told a shorter wait may go by that.
		if r := h.Run(made.ID); r.PollAfter == 10*time.Second && s.begun.Load() > 0 {
			h.Errorf("the wait that a run itself allows became %v", r.PollAfter)
		}
		probes := s.probed.Load()
		watch.Until(h.T, "the server is asked again", func() bool { return s.probed.Load() > probes+1 })
		if n := s.begun.Load(); n > before {
			h.Errorf("%d runs were given to a server that is away", n-before)
		}
		s.away.Store(false)
		for _, id := range []string{made.ID, again.ID} {
			if r := ended(h, id); r.State != run.Succeeded {
				h.Errorf("run = %+v", r)
			}
		}
		watch.Until(h.T, "somebody says that it is back", func() bool {
			return h.Count(`SELECT count(*) FROM engine_away`) == 0
		})
	})
}

// TestAServerThatStaysAway fails runs when their tool's time is over, and takes
// nothing for them.
func TestAServerThatStaysAway(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		s := &server{script: paints}
		s.away.Store(true)
		work(h, s, quickProbes)
		made := create(h, "quick", nil)
		watch.Until(h.T, "somebody says that the server is away", func() bool { return h.Count(`SELECT count(*) FROM engine_away`) == 1 })
		if r := h.Run(made.ID); r.State.IsEnded() {
			h.Errorf("run = %+v, want it to wait", r)
		}
		h.Pass(2 * time.Second)
		r := ended(h, made.ID)
		if r.State != run.Failed || r.ErrorCode != string(engine.Unavailable) || r.TokensCharged != 0 {
			h.Errorf("run = %+v", r)
		}
		if b := h.Balance(r.AccountID); b.Held != 0 || b.Tokens != 100 {
			h.Errorf("balance = %+v, want all of it back", b)
		}
	})
}

// TestAServerThatOneNodeReaches has two nodes, of which one finds nobody: runs
// wait for the other like for any engine that is busy.
func TestAServerThatOneNodeReaches(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		reached, free := make(chan string, 10), make(chan struct{})
		near := &server{script: func(ctx context.Context, j engine.Job, out engine.Sink) error {
			reached <- j.RunID
			select {
			case <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			return paints(ctx, j, out)
		}}
		far := &server{script: paints}
		far.away.Store(true)
		watchEngines(h)
		work(h, near, func(p *runner.Parts) {
			quickProbes(p)
			p.Slots = map[string]engine.Slots{generationtest.Engine: {Engine: near, Parallel: 1}}
		})
		first := create(h, "cost", nil)
		receive(h, reached, "the node that reaches the server")
		blind := build(h, far, quickProbes)
		start(h, blind)
		second := create(h, "brief", nil)
		watch.Until(h.T, "both nodes said what they find", func() bool { return h.Count(`SELECT count(*) FROM engine_away`) == 2 })
		watch.Until(h.T, "the polls are as usual", func() bool {
			rec, err := h.Runs.GetStatus(h.Context(), second.AccountID, second.ID)
			h.OK(err)
			return rec.RetryAfter == rec.PollAfter
		})
		h.Pass(6 * time.Second) // more than the tool's time
		h.OK(blind.Reap(h.Context()))
		if r := h.Run(second.ID); r.State.IsEnded() {
			h.Errorf("run = %+v, want it to wait for the node that has a server", r)
		}
		close(free)
		for _, id := range []string{first.ID, second.ID} {
			if r := ended(h, id); r.State != run.Succeeded {
				h.Errorf("run = %+v", r)
			}
		}
	})
}

// TestOurOwnStoreIsNoServer fails what the engine hands over: that says nothing
// about its server.
func TestOurOwnStoreIsNoServer(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		s := &server{script: func(context.Context, engine.Job, engine.Sink) error {
			return engine.FailTransient(engine.Unavailable, "Not now.").WithCause(fault.New(fault.Unavailable, "the store is away"))
		}}
		work(h, s, quickProbes)
		if r := ended(h, create(h, "cost", nil).ID); r.State != run.Failed || r.ErrorCode != string(engine.Unavailable) || r.Attempt != 1 {
			h.Errorf("run = %+v", r)
		}
		if n := h.Count(`SELECT count(*) FROM engine_away`); n != 0 {
			h.Errorf("%d servers are said to be away", n)
		}
	})
}

// TestCancelAsTheServerGoesAway cancels a run on another node, in the moment in
// which this one finds nobody.
func TestCancelAsTheServerGoesAway(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		s := &server{}
		s.script = func(_ context.Context, j engine.Job, _ engine.Sink) error {
			h.Exec(`UPDATE run SET cancel = TRUE WHERE id = $1`, j.RunID)
			s.away.Store(true)
			return engine.FailTransient(engine.Unavailable, "Nobody is there.")
		}
		work(h, s, quickProbes)
		if r := ended(h, create(h, "cost", nil).ID); r.State != run.Cancelled {
			h.Errorf("run = %+v", r)
		}
	})
}

// TestAProbeThatPanics is a server that is away, and no more than that.
func TestAProbeThatPanics(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		work(h, &hollow{script: paints}, quickProbes)
		watch.Until(h.T, "somebody says that the server is away", func() bool { return h.Count(`SELECT count(*) FROM engine_away`) == 1 })
	})
}

type hollow struct{ script }

func (hollow) Probe(context.Context) error { panic("nothing in it") }

// TestNotesOutliveAWorker leaves a note, loses the worker, and finds it again.
func TestNotesOutliveAWorker(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		left := make(chan string, 2)
		dies := make(chan struct{})
		stop := work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			left <- j.SavedCheckpoint
			if j.SavedCheckpoint == "" {
				if err := out.SaveCheckpoint(ctx, strings.Repeat("x", engine.MaxCheckpoint+1)); err == nil {
					return errors.New("a note without end was kept")
				}
				if err := out.SaveCheckpoint(ctx, "job-7"); err != nil {
					return err
				}
				close(dies)
				<-ctx.Done()
				return ctx.Err()
			}
			return paints(ctx, j, out)
		}), func(p *runner.Parts) { p.Drain = time.Millisecond })
		made := create(h, "cost", nil)
		receive(h, dies, "the note")
		stop()
		if r := h.Run(made.ID); r.EngineState != "job-7" || r.State != run.Queued {
			h.Errorf("run = %+v", r)
		}
		<-left
		work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			left <- j.SavedCheckpoint
			return paints(ctx, j, out)
		}), nil)
		if r := ended(h, made.ID); r.State != run.Succeeded {
			h.Errorf("run = %+v", r)
		}
		if got := <-left; got != "job-7" {
			h.Errorf("left = %q, want what the worker before left", got)
		}
		if r := h.Run(made.ID); r.EngineState != "" {
			h.Errorf("note = %q, of a run that is over", r.EngineState)
		}
	})
}

// TestALateNoteIsRefused has a worker that lost its run write a note.
func TestALateNoteIsRefused(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		made := create(h, "cost", nil)
		old := h.Claim("old")
		h.Do(func(tx *sqldb.Tx) error {
			_, err := run.Requeue(h.Context(), tx, run.Lease{ID: old.ID, Attempt: old.Attempt}, run.Lost)
			return err
		})
		h.Claim("new")
		h.Do(func(tx *sqldb.Tx) error {
			ok, err := run.SetEngineState(h.Context(), tx, run.Lease{ID: old.ID, Attempt: old.Attempt}, "late")
			if ok {
				h.Error("a late note was kept")
			}
			return err
		})
		if r := h.Run(made.ID); r.EngineState != "" {
			h.Errorf("note = %q", r.EngineState)
		}
		work(h, paints, func(p *runner.Parts) { p.Lease = time.Hour })
		h.Exec(`UPDATE run SET lease_until = 1 WHERE id = $1`, made.ID)
		ended(h, made.ID)
	})
}

// remote is an engine that leaves work behind.
type remote struct {
	script
	ended chan string
	ill   atomic.Bool
}

func (e *remote) Abandon(_ context.Context, note string) error {
	if e.ill.Load() {
		return engine.FailTransient(engine.Unavailable, "Nobody is there.")
	}
	e.ended <- note
	return nil
}

// TestNobodyWaitsForItAnyMore ends work elsewhere whose run failed, or was
// cancelled while it waited for another worker.
func TestNobodyWaitsForItAnyMore(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		reached := make(chan struct{}, 1)
		e := &remote{ended: make(chan string, 10), script: func(ctx context.Context, j engine.Job, out engine.Sink) error {
			if err := out.SaveCheckpoint(ctx, "job of "+j.RunID); err != nil {
				return err
			}
			if j.Values["prompt"] == "fail" {
				return engine.Fail(engine.Failed, "It does not work.")
			}
			reached <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}}
		e.ill.Store(true)
		stop := work(h, e, func(p *runner.Parts) { p.Drain = time.Millisecond })
		prompt := func(text string) func(*generation.Draft) {
			return func(d *generation.Draft) { d.Inputs = map[string]any{"prompt": text} }
		}
		failed := ended(h, create(h, "cost", prompt("fail")).ID)
		waits := create(h, "cost", prompt("wait"))
		receive(h, reached, "the engine")
		stop()
		if _, _, err := h.Runs.CancelRun(h.Context(), generationtest.Own(waits.PersonID), waits.ID); err != nil {
			h.Fatal(err)
		}
		e.ill.Store(false)
		work(h, e, nil)
		got := []string{receive(h, e.ended, "the end of the first"), receive(h, e.ended, "the end of the second")}
		slices.Sort(got)
		want := []string{"job of " + failed.ID, "job of " + waits.ID}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			h.Errorf("ended %v, want %v", got, want)
		}
		watch.Until(h.T, "the notes are gone", func() bool { return h.Count(`SELECT count(*) FROM run WHERE note <> ''`) == 0 })
	})
}
