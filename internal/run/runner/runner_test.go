package runner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/engine"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

func TestLeasesAreRenewed(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		const lease = 600 * time.Millisecond
		r := build(h, e, func(p *runner.Parts) { p.Lease = lease })
		start(h, r)
		made := create(h, "cost", nil)
		receive(h, e.reached, "the engine")
		for range 3 {
			h.Pass(lease / 2)
			until := h.Now().Add(lease).UnixMicro()
			watch.Until(h.T, "a longer lease", func() bool { return h.Count(`SELECT lease_until FROM run WHERE id = $1`, made.ID) == until })
		}
		h.OK(r.Reap(h.Context()))
		close(e.free)
		if now := ended(h, made.ID); now.State != run.Succeeded || now.Attempt != 1 {
			h.Errorf("run = %+v", now)
		}
	})
}

// TestWhatNobodyWorksOnIsNotKept gives a worker a run that it has no job for:
// others must get it, however long the worker lives.
func TestWhatNobodyWorksOnIsNotKept(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		h.Apply(map[string]string{
			"cost":  generationtest.Manifest("cost"),
			"other": "price: {type: FREE}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: other}\n",
		})
		e := newStuck()
		const lease = 600 * time.Millisecond
		r := build(h, e, func(p *runner.Parts) { p.Lease = lease })
		start(h, r)
		known := create(h, "cost", nil)
		receive(h, e.reached, "the engine")
		h.Do(func(tx *sqldb.Tx) error { return run.ReportServed(h.Context(), tx, []string{"other"}) }) // so that it waits for another node
		lost := create(h, "other", nil)
		h.Do(func(tx *sqldb.Tx) error {
			var worker string
			if err := tx.QueryRow(h.Context(), `SELECT worker FROM run WHERE id = $1`, known.ID).Scan(&worker); err != nil {
				return err
			}
			_, _, ok, err := run.Claim(h.Context(), tx, run.ClaimOptions{Engine: "other", Worker: worker, Lease: lease})
			if !ok {
				h.Error("nothing to claim")
			}
			return err
		})
		for range 3 {
			h.Pass(lease / 2)
			until := h.Now().Add(lease).UnixMicro()
			watch.Until(h.T, "a longer lease", func() bool { return h.Count(`SELECT lease_until FROM run WHERE id = $1`, known.ID) == until })
		}
		h.OK(r.Reap(h.Context()))
		if now := h.Run(lost.ID); now.State != run.Queued {
			h.Errorf("what nobody works on is %s", now.State)
		}
		close(e.free)
		ended(h, known.ID)
	})
}

// TestShutdown stops a runner in the middle of a job.
func TestShutdown(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		stop := work(h, e, func(p *runner.Parts) { p.Drain = time.Millisecond })
		made := create(h, "many", nil)
		receive(h, e.reached, "the engine")
		stop()
		if r := h.Run(made.ID); r.State != run.Queued || h.Balance(made.AccountID).Held != 4 {
			h.Errorf("run = %+v", r)
		}
		if n := h.Count(`SELECT count(*) FROM run_attempt WHERE run_id = $1 AND outcome = 'returned'`, made.ID); n != 1 {
			h.Errorf("%d were handed back, want 1", n)
		}
		work(h, paints, nil)
		if r := ended(h, made.ID); r.State != run.Succeeded || r.Attempt != 2 || r.TokensCharged != 4 {
			h.Errorf("run = %+v", r)
		}
	})
}

func TestDraining(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		stop := work(h, e, nil)
		made := create(h, "many", nil)
		receive(h, e.reached, "the engine")
		done := make(chan struct{})
		go func() { defer close(done); stop() }()
		close(e.free)
		receive(h, done, "the end")
		if r := h.Run(made.ID); r.State != run.Succeeded {
			h.Errorf("it is %s", r.State)
		}
		late := create(h, "many", nil)
		if r := h.Run(late.ID); r.State != run.Queued {
			h.Errorf("after the end a run was taken: %s", r.State)
		}
	})
}

// TestLostRuns leaves runs to workers that die.
func TestLostRuns(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		r := build(h, paints, func(p *runner.Parts) { p.Attempts = 2 })
		made := create(h, "cost", nil)
		stays := func(what string, state run.State) {
			h.Helper()
			h.OK(r.Reap(h.Context()))
			if now := h.Run(made.ID); now.State != state {
				h.Errorf("%s: it is %s, want %s", what, now.State, state)
			}
		}
		back := func(why string) {
			h.Helper()
			one := h.Claim("worker")
			h.Do(func(tx *sqldb.Tx) error {
				_, err := run.Requeue(h.Context(), tx, run.Lease{ID: one.ID, Attempt: one.Attempt}, why)
				return err
			})
		}
		for range 3 { // who hands it back has not died
			back(run.Returned)
		}
		h.Claim("first")
		h.Pass(30 * time.Second)
		stays("at the end of its lease", run.Running)
		h.Pass(time.Microsecond)
		stays("after it", run.Queued)
		h.Claim("second")
		h.Pass(31 * time.Second)
		stays("once too often", run.Failed)
		if now := h.Run(made.ID); now.ErrorCode != "ENGINE_FAILED" || now.ErrorText == "" || h.Balance(made.AccountID).Held != 0 {
			h.Errorf("run = %+v", now)
		}
		made = create(h, "cost", nil)
		for range 3 { // its work goes on at a server
			h.Claim("remote")
			h.Exec(`UPDATE run SET note = 'prompt 7' WHERE id = $1`, made.ID)
			h.Pass(31 * time.Second)
			stays("with a note", run.Queued)
		}
		h.Exec(`UPDATE run SET note = '' WHERE id = $1`, made.ID)
		h.Claim("local")
		h.Pass(31 * time.Second)
		stays("without one", run.Failed)
		made = create(h, "cost", nil)
		h.Claim("third")
		h.Exec(`UPDATE run SET cancel = TRUE WHERE id = $1`, made.ID)
		h.Pass(31 * time.Second)
		stays("cancelled meanwhile", run.Cancelled)
	})
}

// TestManyLostRuns is more than one batch.
func TestManyLostRuns(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		r := build(h, paints, nil)
		d := h.Draft(generationtest.Own(h.Person(0)), "free")
		for range 101 {
			h.Create(d)
			h.Claim("dead")
		}
		h.Pass(31 * time.Second)
		h.OK(r.Reap(h.Context()))
		if n := h.Count(`SELECT count(*) FROM run WHERE stage = 'queued'`); n != 101 {
			h.Errorf("%d wait again, want 101", n)
		}
		h.Pass(time.Hour + time.Microsecond)
		h.OK(r.Reap(h.Context()))
		if n := h.Count(`SELECT count(*) FROM run WHERE status = 'failed' AND error_code = 'ENGINE_UNAVAILABLE'`); n != 101 {
			h.Errorf("%d were given up, want 101", n)
		}
	})
}

func TestWaitingTooLong(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		r := build(h, paints, func(p *runner.Parts) { p.Slots = nil })
		made := create(h, "cost", nil)
		h.Pass(time.Hour)
		h.OK(r.Reap(h.Context()))
		if now := h.Run(made.ID); now.State != run.Queued {
			h.Errorf("after just the time it is %s", now.State)
		}
		h.Pass(time.Microsecond)
		h.OK(r.Reap(h.Context()))
		if now := h.Run(made.ID); now.State != run.Failed || now.ErrorCode != "ENGINE_UNAVAILABLE" || h.Balance(made.AccountID).Held != 0 {
			h.Errorf("run = %+v", now)
		}
	})
}

func TestPlaces(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		var now, most atomic.Int64
		e := newStuck()
		work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return e.Run(ctx, j, out)
		}), func(p *runner.Parts) {
			p.Slots = map[string]engine.Slots{generationtest.Engine: {Engine: p.Slots[generationtest.Engine].Engine, Parallel: 2}}
		})
		var ids []string
		for range 6 {
			ids = append(ids, create(h, "free", nil).ID)
		}
		for range 2 {
			receive(h, e.reached, "the engine")
		}
		if n := h.Count(`SELECT count(*) FROM run WHERE stage = 'running'`); n != 2 {
			h.Errorf("%d run, want 2", n)
		}
		close(e.free)
		for _, id := range ids {
			ended(h, id)
		}
		if most.Load() != 2 {
			h.Errorf("%d ran at once, want 2", most.Load())
		}
	})
}

func TestNotice(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		e := newStuck()
		r := build(h, e, func(p *runner.Parts) {
			p.Slots = map[string]engine.Slots{generationtest.Engine: {Engine: e, Parallel: 1}}
		})
		if r.NoticeQueued(generationtest.Engine) {
			h.Error("who does not work takes a run")
		}
		start(h, r)
		watch.Until(h.T, "a free place", func() bool { return r.NoticeQueued(generationtest.Engine) })
		if r.NoticeQueued("other") {
			h.Error("an engine that is not here takes a run")
		}
		made := create(h, "free", nil)
		receive(h, e.reached, "the engine")
		if r.NoticeQueued(generationtest.Engine) {
			h.Error("who is busy takes a run")
		}
		offered := make(chan struct{})
		go func() { defer close(offered); r.OfferSlot(h.Context(), generationtest.Engine) }()
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		r.OfferSlot(ctx, generationtest.Engine) // comes back at once
		r.OfferSlot(h.Context(), "other")
		select {
		case <-offered:
			h.Error("an offer was taken while all were busy")
		default:
		}
		close(e.free)
		receive(h, offered, "the offer")
		ended(h, made.ID)
	})
}

// Not parallel: goleak sees the goroutines of every test.
func TestNothingIsLeftRunning(t *testing.T) {
	for _, engineName := range dbtest.Engines {
		t.Run(engineName, func(t *testing.T) {
			db := dbtest.Open(t, dbtest.URL(t, engineName))
			h := generationtest.New(dbtest.Fixture{T: t, DB: db}, generationtest.Unlimited)
			if err := db.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			e := newStuck()
			before := goleak.IgnoreCurrent()
			stop := work(h, script(func(ctx context.Context, j engine.Job, out engine.Sink) error {
				if j.OutputType == "IMG" {
					return paints(ctx, j, out)
				}
				return e.Run(ctx, j, out)
			}), func(p *runner.Parts) { p.Drain = time.Millisecond })
			for range 3 {
				ended(h, create(h, "free", nil).ID)
			}
			create(h, "words", nil)
			receive(h, e.reached, "the engine")
			stop()
			goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"))
		})
	}
}
