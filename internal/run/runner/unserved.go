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

// A manifest can name an engine that no node has. Nobody would ever take its
// runs, so they fail at once instead of waiting for MaxWait. Every runner says
// which engines it has, and whoever takes a run shows it:
//
//	nobody ever had it           ──▶ its runs fail at once
//	somebody had it, and is gone ──▶ its runs wait for servedFor: a node that
//	                                 restarts, or is replaced, comes back
//
// A runner that has been here for less than that cannot tell who is gone: after
// an outage all nodes come back, one after the other.
const (
	serveEvery = time.Minute
	servedFor  = 10 * time.Minute
)

// reportServed says which engines this node has.
func (r *Runner) reportServed(ctx context.Context) error {
	names := slices.Collect(maps.Keys(r.pools))
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error { return run.ReportServed(ctx, tx, names) })
	if err == nil {
		r.served.Store(true)
	}
	return err
}

// watchUnserved ends runs as soon as they are created here for an engine that
// this node does not have. Those of other nodes are found by reap.
func (r *Runner) watchUnserved(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.unknown:
		}
		if _, err := r.failUnserved(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("runner: cannot end runs that nobody takes", "error", err)
		}
	}
}

// failUnserved ends runs for engines that no node has.
func (r *Runner) failUnserved(ctx context.Context) (found int, err error) {
	if !r.served.Load() { // our own would be among them
		return 0, nil
	}
	var names []string
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
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
	for _, name := range names {
		ended := 0
		for n := reapBatch; n == reapBatch; {
			if n, err = r.failQueued(ctx, name); err != nil {
				return 0, err
			}
			ended += n
		}
		if ended > 0 {
			r.Log.Warn("no node has an engine; its runs were failed", "engine", name, "runs", ended)
		}
	}
	return 0, nil
}

// failQueued ends runs that wait for an engine, and says how many it found.
func (r *Runner) failQueued(ctx context.Context, name string) (found int, err error) {
	var waiting []run.Run
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		waiting, err = run.ListQueued(ctx, tx, name, reapBatch)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, one := range waiting {
		err := r.Runs.End(ctx, one, generation.Ending{
			State:     run.Failed,
			ErrorCode: string(engine.Unavailable),
			ErrorText: "Nothing here runs this tool. Tell the operator.",
		})
		if err != nil && !errors.Is(err, generation.ErrOver) {
			return 0, err
		}
	}
	return len(waiting), nil
}
