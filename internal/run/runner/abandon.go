package runner

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/run/run"
)

const (
	abandonEvery = 5 * time.Second
	abandonTime  = 10 * time.Second // timeout for ending the remote work of one run
	abandonBatch = 20
)

// abandonRemoteWork stops the work on model servers for runs that have ended:
// runs that were cancelled while they were queued, or that failed after their
// engine had saved a checkpoint for another attempt.
func (r reaper) abandonRemoteWork(ctx context.Context) error {
	for _, p := range r.slotPools {
		e, ok := p.Engine.(engine.Abandoner)
		if !ok || p.unavailable.Load() {
			continue
		}
		var work []run.RemoteWork
		err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			work, err = run.ListRemoteWork(ctx, tx, p.name, abandonBatch)
			return err
		})
		if err != nil {
			return err
		}
		for _, l := range work {
			if again, err := r.abandonOne(ctx, p, e, l); err != nil {
				return err
			} else if again {
				break // the server is temporarily failing; the work is stopped later
			}
		}
	}
	return nil
}

// abandonOne stops the remote work of one run, and reports whether this must be
// attempted again later.
func (r reaper) abandonOne(ctx context.Context, p *slotPool, e engine.Abandoner, l run.RemoteWork) (again bool, err error) {
	short, cancel := context.WithTimeout(ctx, abandonTime)
	defer cancel()
	if err := e.Abandon(short, l.EngineState); err != nil {
		if short.Err() != nil || engine.AsError(err).Transient {
			r.Log.Info("could not cancel a run's work on the model server; will retry", "run", l.RunID, "engine", p.name, "error", err)
			return true, ctx.Err()
		}
		r.Log.Warn("could not cancel a run's work on the model server; giving up", "run", l.RunID, "engine", p.name, "error", err)
	}
	return false, r.DB.Write(ctx, func(tx *sqldb.Tx) error { return run.ClearRemoteWork(ctx, tx, l) })
}
