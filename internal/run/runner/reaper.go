package runner

import (
	"context"
	"errors"

	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// reapBatch is how many lost runs are looked at in one go.
const reapBatch = 100

// reapRuns takes over runs whose worker died, and ends those that nobody takes.
func (r *Runner) reapRuns(ctx context.Context) error {
	for _, batch := range []func(context.Context) (int, error){r.requeueExpired, r.failWaiting, r.failUnavailable, r.failUnserved} {
		for n := reapBatch; n == reapBatch; {
			var err error
			if n, err = batch(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// requeueExpired puts lost runs into the queue again, and says how many it found.
func (r *Runner) requeueExpired(ctx context.Context) (found int, err error) {
	var over []run.Run
	requeued := map[string]bool{}
	err = r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		over = nil
		clear(requeued)
		lost, err := run.LockExpired(ctx, tx, reapBatch)
		if err != nil {
			return err
		}
		found = len(lost)
		var again []run.Run
		for _, one := range lost {
			before, err := run.CountLosses(ctx, tx, one.ID)
			if err != nil {
				return err
			}
			if before+1 >= r.maxDeaths(one) || one.Cancel {
				over = append(over, one)
				continue
			}
			again = append(again, one)
			requeued[one.Engine] = true
		}
		return run.RequeueLost(ctx, tx, again)
	})
	if err != nil {
		return 0, err
	}
	for name := range requeued {
		r.Notice(name)
	}
	for _, one := range over {
		e := generation.Ending{State: run.Failed, ErrorCode: string(engine.Failed), ErrorText: "What runs this tool died each time that it was tried. It is not tried again."}
		if one.Cancel {
			e = generation.Ending{State: run.Cancelled}
		}
		if err := r.Runs.End(ctx, one, e); err != nil && !errors.Is(err, generation.ErrOver) {
			return 0, err
		}
	}
	return found, nil
}

// remoteDeaths is how many times as many workers may die with a run whose work
// goes on at a model server: they only waited for it, and the next one takes it
// up, where giving up would throw away what may have been paid for.
const remoteDeaths = 10

// maxDeaths is how many workers may die with a run.
func (r *Runner) maxDeaths(one run.Run) int64 {
	if one.EngineState != "" {
		return remoteDeaths * int64(r.Attempts)
	}
	return int64(r.Attempts)
}

// failWaiting ends runs that waited too long, and says how many it found.
func (r *Runner) failWaiting(ctx context.Context) (found int, err error) {
	var waiting []run.Run
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		waiting, err = run.WaitingSince(ctx, tx, tx.Now.Add(-r.MaxWait), reapBatch)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, one := range waiting {
		err := r.Runs.End(ctx, one, generation.Ending{
			State: run.Failed, ErrorCode: string(engine.Unavailable), ErrorText: "Nothing was free to run this tool in time.",
		})
		if err != nil && !errors.Is(err, generation.ErrOver) {
			return 0, err
		}
	}
	return len(waiting), nil
}
