package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// An engine's server can be away. As long as it is, nothing is claimed for it
// here: its runs wait, and those whose tool allows no longer wait are failed.
//
//	there ──two probes fail, or a run finds nobody──▶ away
//	  ▲                                                │ told to all nodes,
//	  └──────────────── a probe succeeds ──────────────┘ every few seconds
//
// Where another node reaches the server, it says so, and the runs wait for that
// one as for any engine that is busy.

const (
	probeTime  = 10 * time.Second // that a probe may take
	probeFirst = time.Second      // after the server was found away
	probeLast  = 15 * time.Second // and after it was away for long
)

// watchServer keeps an eye on an engine's server.
func (r *Runner) watchServer(ctx context.Context, p *pool, server engine.Prober) {
	wait := probeFirst
	failed := 0
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-p.foundUnavailable:
			timer.Stop()
			wait = probeFirst
			failed = 1
			r.reportAvailability(ctx, p, true, errors.New("a run found nobody"))
			continue
		case <-timer.C:
		}
		err := r.probeServer(ctx, server)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			wait = r.Probe
			failed = 0
			if p.unavailable.Load() || r.hasReports(ctx, p) {
				r.reportAvailability(ctx, p, false, nil)
			}
		default:
			failed++
			wait = min(probeFirst<<min(failed, 10), probeLast)
			if failed >= 2 { // once is an accident
				r.reportAvailability(ctx, p, true, err)
			}
		}
	}
}

// probeServer asks the server. A panic is a failure like any other.
func (r *Runner) probeServer(ctx context.Context, server engine.Prober) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return server.Probe(ctx)
}

// hasReports tells whether somebody finds the server away, or did.
func (r *Runner) hasReports(ctx context.Context, p *pool) (is bool) {
	_ = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { is, err = run.HasReports(ctx, tx, p.name); return err }) // it is asked again soon
	return is
}

// reportAvailability turns the engine off or on here, and lets the other nodes know.
func (r *Runner) reportAvailability(ctx context.Context, p *pool, away bool, why error) {
	was := r.setAvailability(p, away, why)
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if away {
			return run.ReportUnavailable(ctx, tx, p.name, r.worker)
		}
		return run.ReportAvailable(ctx, tx, p.name, r.worker)
	})
	if err != nil && ctx.Err() == nil {
		r.Log.Warn("runner: cannot tell that a server is away, or back", "engine", p.name, "error", err)
	}
	if was && !away {
		r.Notice(p.name)
	}
}

// setAvailability turns the engine off or on here, and tells whether it was off.
func (r *Runner) setAvailability(p *pool, away bool, why error) (was bool) {
	was = p.unavailable.Swap(away)
	switch {
	case away && !was:
		r.Log.Warn("an engine's server is away; its runs wait", "engine", p.name, "error", why)
	case !away && was:
		r.Log.Info("an engine's server is back", "engine", p.name)
	}
	r.metrics.setUnavailable(p.name, away)
	return was
}

// canWait tells whether a run whose engine found nobody may wait for it. It may
// for as long as its tool may run, from its first start.
func (r *Runner) canWait(ctx context.Context, p *pool, j *job, why error) bool {
	if _, ok := p.Engine.(engine.Prober); !ok {
		return false
	}
	r.setAvailability(p, true, why)
	select {
	case p.foundUnavailable <- struct{}{}:
	default:
	}
	tool, err := r.Catalog.Version(ctx, j.run.ToolHash)
	return err == nil && r.DB.Now().Sub(j.run.Started) < tool.Timeout
}

// failUnavailable ends runs that waited for a server that is away for as long as
// their tool may run.
func (r *Runner) failUnavailable(ctx context.Context) (found int, err error) {
	var away map[string]time.Time
	var now time.Time
	tools := map[string][]string{}
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		now = tx.Now
		clear(tools)
		if away, err = run.UnavailableEngines(ctx, tx); err != nil {
			return err
		}
		for name := range away {
			if tools[name], err = run.ListQueuedTools(ctx, tx, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for name, since := range away {
		for _, hash := range tools[name] {
			for n := reapBatch; n == reapBatch; {
				if n, err = r.failOverdue(ctx, name, hash, since, now); err != nil {
					return 0, err
				}
			}
		}
	}
	return 0, nil
}

// failOverdue ends runs of a tool whose wait has been too long, and says how many
// it found. It counts from their start, when the server was there or not, or
// from when they could have been started.
func (r *Runner) failOverdue(ctx context.Context, name, toolHash string, since, now time.Time) (found int, err error) {
	tool, err := r.Catalog.Version(ctx, toolHash)
	if err != nil {
		return 0, err
	}
	started := now.Add(-tool.Timeout)
	created := started
	if since.After(started) {
		created = time.UnixMicro(0)
	}
	var waiting []run.Run
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		waiting, err = run.ListOverdue(ctx, tx, name, toolHash, started, created, reapBatch)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, one := range waiting {
		err := r.Runs.End(ctx, one, generation.Ending{
			State: run.Failed, ErrorCode: string(engine.Unavailable), ErrorText: "What runs this tool could not be reached in time.",
		})
		if err != nil && !errors.Is(err, generation.ErrOver) {
			return 0, err
		}
	}
	return len(waiting), nil
}
