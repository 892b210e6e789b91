package runner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// A manifest can name an engine that no node has. The runs of such an engine
// fail immediately instead of after MaxWait. To detect such engines, every
// runner regularly reports the engines that it has. Claiming a run counts as a
// report, too.
//
//	no node ever had it           ──▶ its runs fail immediately
//	a node had it and has stopped ──▶ its runs wait for servedFor, because the
//	                                  node may be restarted or replaced
//	a node's settings name it,    ──▶ its runs wait for MaxWait, and a warning is
//	but no worker serves its pool     logged
//
// A runner that started less than servedFor ago does not fail runs of an engine
// whose node has stopped, because after an outage all nodes restart one after
// the other.
const (
	serveEvery = time.Minute
	servedFor  = 10 * time.Minute
	// unstaffedAfter is how long no worker must have reported an engine before
	// a warning about its pool is logged. A report may come late.
	unstaffedAfter = 3 * serveEvery
)

// reportServed records in the database which engines this node has, and which
// its settings name.
func (r *Runner) reportServed(ctx context.Context) error {
	names := slices.Collect(maps.Keys(r.slotPools))
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := run.DeclareEngines(ctx, tx, r.Pools); err != nil {
			return err
		}
		return run.ReportServed(ctx, tx, names)
	})
	if err == nil {
		r.served.Store(true)
	}
	return err
}

// watchUnserved fails runs as soon as they are created on this node for an
// engine that no node has. Such runs created on other nodes are found by
// reapRuns.
func (r reaper) watchUnserved(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.unknown:
		}
		if _, err := r.failUnserved(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("could not end queued runs whose engine is not configured on any node", "error", err)
		}
	}
}

// failUnserved fails all queued runs for engines that no node has. found is
// always 0, because no further call is needed.
func (r reaper) failUnserved(ctx context.Context) (found int, err error) {
	if !r.served.Load() { // before the first report, the engines of this node would seem to be missing
		return 0, nil
	}
	var names []string
	var unstaffed map[string]string
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		if unstaffed, err = run.ListUnstaffed(ctx, tx, tx.Now.Add(-unstaffedAfter)); err != nil {
			return err
		}
		since := time.Time{}
		if tx.Now.Sub(r.began) >= servedFor {
			since = tx.Now.Add(-servedFor)
		}
		names, err = run.UnservedEngines(ctx, tx, since)
		return err
	})
	if err != nil {
		return 0, err
	}
	r.logUnstaffed(unstaffed)
	for _, name := range names {
		ended := 0
		for n := reapBatch; n == reapBatch; {
			if n, err = r.failQueued(ctx, name); err != nil {
				return 0, err
			}
			ended += n
		}
		if ended > 0 {
			r.Log.Warn("queued runs failed because their engine is not configured on any node", "engine", name, "runs", ended)
		}
	}
	return 0, nil
}

// logUnstaffed logs a warning for every engine that has queued runs and that no
// worker serves, once until a worker serves it again. pools are the pools of
// these engines, by engine.
func (r reaper) logUnstaffed(pools map[string]string) {
	r.mu.Lock()
	before := r.unstaffed
	r.unstaffed = pools
	r.mu.Unlock()

	for _, name := range slices.Sorted(maps.Keys(pools)) {
		if _, known := before[name]; !known {
			r.Log.Warn("queued runs wait because no worker serves the pool of their engine", "engine", name, "pool", pools[name])
		}
	}
}

// failQueued fails at most reapBatch queued runs of an engine, and returns
// their number.
func (r reaper) failQueued(ctx context.Context, name string) (found int, err error) {
	var waiting []run.Run
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		waiting, err = run.ListQueued(ctx, tx, name, reapBatch)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, one := range waiting {
		err := r.Runs.EndRun(ctx, one, generation.Outcome{
			State:     run.Failed,
			ErrorCode: string(engine.Unavailable),
			ErrorText: "No server of this installation runs this tool. Contact the operator.",
		})
		if err != nil && !errors.Is(err, generation.ErrNotHeld) {
			return 0, err
		}
	}
	return len(waiting), nil
}
