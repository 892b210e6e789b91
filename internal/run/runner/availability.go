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

// The server of an engine can be unavailable. During this time, this node
// claims no runs for the engine. The runs stay queued, and a run fails when its
// waiting time exceeds the timeout of its tool.
//
//	available ──two probes fail, or a run cannot connect──▶ unavailable
//	    ▲                                                        │ reported to all nodes,
//	    └─────────────────── a probe succeeds ───────────────────┘ every few seconds
//
// If another node can reach the server, that node reports the server as
// available, and the runs wait for that node as they would for any busy engine.

const (
	probeTime  = 10 * time.Second // timeout of a probe
	probeFirst = time.Second      // interval between probes after the first failure
	probeLast  = 15 * time.Second // longest interval between probes after repeated failures
)

// watchServer probes the server of an engine until ctx ends.
func (r *Runner) watchServer(ctx context.Context, p *slotPool, server engine.Prober) {
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
			r.reportAvailability(ctx, p, true, errors.New("a run could not reach the server"))
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
			if failed >= 2 { // one failure may be temporary
				r.reportAvailability(ctx, p, true, err)
			}
		}
	}
}

// probeServer probes the server once. It returns a panic of the engine as an
// error.
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

// hasReports reports whether any worker has reported on the server.
func (r *Runner) hasReports(ctx context.Context, p *slotPool) (is bool) {
	_ = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { is, err = run.HasReports(ctx, tx, p.name); return err }) // after an error, the next probe queries again
	return is
}

// reportAvailability records in memory and in the database whether the server
// of an engine is available. cause is the error if the server is unavailable.
func (r *Runner) reportAvailability(ctx context.Context, p *slotPool, unavailable bool, cause error) {
	was := r.setAvailability(p, unavailable, cause)
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if unavailable {
			return run.ReportUnavailable(ctx, tx, p.name, r.worker)
		}
		return run.ReportAvailable(ctx, tx, p.name, r.worker)
	})
	if err != nil && ctx.Err() == nil {
		r.Log.Warn("could not store the availability of a model server", "engine", p.name, "error", err)
	}
	if was && !unavailable {
		r.NoticeQueued(p.name)
	}
}

// setAvailability records in memory whether the server of an engine is
// available, and returns whether it was unavailable before.
func (r *Runner) setAvailability(p *slotPool, unavailable bool, cause error) (was bool) {
	was = p.unavailable.Swap(unavailable)
	if unavailable {
		p.recordUnreachable(r.DB.Now(), cause)
	}
	switch {
	case unavailable && !was:
		r.Log.Warn("model server unavailable", "engine", p.name, "error", cause)
	case !unavailable && was:
		r.Log.Info("model server available again", "engine", p.name)
	}
	r.metrics.setUnavailable(p.name, unavailable)
	return was
}

// canWait reports whether a run that could not reach the server of its engine
// may wait for the server. The run may wait until the timeout of its tool has
// passed since the run first started, not counting the time in the server's
// queue.
func (r *Runner) canWait(ctx context.Context, p *slotPool, j *job, why error) bool {
	if _, ok := p.Engine.(engine.Prober); !ok {
		return false
	}
	r.setAvailability(p, true, why)
	select {
	case p.foundUnavailable <- struct{}{}:
	default:
	}
	tool, err := r.Catalog.ToolVersion(ctx, j.run.ToolHash)
	return err == nil && r.DB.Now().Sub(j.run.Started)-j.clock.waited() < tool.Timeout
}

// failUnavailable fails runs that have waited for an unavailable server for
// longer than the timeout of their tool.
func (r reaper) failUnavailable(ctx context.Context) (found int, err error) {
	var unavailable map[string]time.Time
	var now time.Time
	tools := map[string][]string{}
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		now = tx.Now
		clear(tools)
		if unavailable, err = run.UnavailableEngines(ctx, tx); err != nil {
			return err
		}
		for name := range unavailable {
			if tools[name], err = run.ListQueuedTools(ctx, tx, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for name, since := range unavailable {
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

// failOverdue fails at most reapBatch runs of a tool that have waited too long,
// and returns their number. The waiting time counts from the start of a run.
// For a run that has never started, it counts from the creation of the run or
// the time when the server became unavailable, whichever is later.
func (r reaper) failOverdue(ctx context.Context, name, toolHash string, since, now time.Time) (found int, err error) {
	tool, err := r.Catalog.ToolVersion(ctx, toolHash)
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
		err := r.Runs.EndRun(ctx, one, generation.Outcome{
			State: run.Failed, ErrorCode: string(engine.Unavailable), ErrorText: "The server that runs this tool could not be reached in time. Try again later.",
		})
		if err != nil && !errors.Is(err, generation.ErrNotHeld) {
			return 0, err
		}
	}
	return len(waiting), nil
}
