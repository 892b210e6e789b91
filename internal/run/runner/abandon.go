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
	abandonTime  = 10 * time.Second // that ending one piece of work may take
	abandonBatch = 20
)

// abandonRemoteWork ends work that goes on elsewhere although its run is over: one that
// was cancelled while it waited, or failed for good after its engine had left
// the work for another try.
func (r *Runner) abandonRemoteWork(ctx context.Context) error {
	for _, p := range r.pools {
		e, ok := p.Engine.(engine.Abandoner)
		if !ok || p.unavailable.Load() {
			continue
		}
		var left []run.RemoteWork
		err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			left, err = run.ListRemoteWork(ctx, tx, p.name, abandonBatch)
			return err
		})
		if err != nil {
			return err
		}
		for _, l := range left {
			if again, err := r.abandonOne(ctx, p, e, l); err != nil {
				return err
			} else if again {
				break // its server has other troubles now
			}
		}
	}
	return nil
}

// abandonOne tells whether it has to be tried again.
func (r *Runner) abandonOne(ctx context.Context, p *pool, e engine.Abandoner, l run.RemoteWork) (again bool, err error) {
	short, cancel := context.WithTimeout(ctx, abandonTime)
	defer cancel()
	if err := e.Abandon(short, l.EngineState); err != nil {
		if short.Err() != nil || engine.As(err).Transient {
			r.Log.Info("work of a run that is over could not be ended; it is tried again", "run", l.RunID, "engine", p.name, "error", err)
			return true, ctx.Err()
		}
		r.Log.Warn("work of a run that is over cannot be ended", "run", l.RunID, "engine", p.name, "error", err)
	}
	return false, r.DB.Write(ctx, func(tx *sqldb.Tx) error { return run.ClearRemoteWork(ctx, tx, l) })
}
