package runner

import (
	"context"
	"errors"

	"atelier/internal/base/sqldb"
	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// reapBatch is the maximum number of runs that one query returns.
const reapBatch = 100

// reaper puts runs whose worker died back into the queue, fails runs that no
// worker can run, and stops remote work of runs that have ended.
type reaper struct{ *Runner }

// reapRuns puts runs whose worker died back into the queue, and fails runs that
// wait too long for a worker or an engine.
func (r reaper) reapRuns(ctx context.Context) error {
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

// requeueExpired puts at most reapBatch runs whose lease has expired back into
// the queue. It ends runs whose cancellation was requested or whose workers
// died too often. It returns the number of runs found.
func (r reaper) requeueExpired(ctx context.Context) (found int, err error) {
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
		r.NoticeQueued(name)
	}
	for _, one := range over {
		e := generation.Outcome{State: run.Failed, ErrorCode: string(engine.Failed), ErrorText: "The worker of this run stopped unexpectedly at every attempt. The run is not retried."}
		if one.Cancel {
			e = generation.Outcome{State: run.Cancelled}
		}
		if err := r.Runs.EndRun(ctx, one, e); err != nil && !errors.Is(err, generation.ErrNotHeld) {
			return 0, err
		}
	}
	return found, nil
}

// remoteDeaths is the factor by which the allowed number of dead workers is
// multiplied for a run whose work continues on a model server. The workers only
// wait for that work and the next worker resumes it, so failing the run would
// waste work that may have been paid for.
const remoteDeaths = 10

// maxDeaths returns the number of dead workers at which a run fails.
func (r reaper) maxDeaths(one run.Run) int64 {
	if one.EngineState != "" {
		return remoteDeaths * int64(r.Attempts)
	}
	return int64(r.Attempts)
}

// failWaiting fails at most reapBatch runs that have been queued for MaxWait,
// and returns their number.
func (r reaper) failWaiting(ctx context.Context) (found int, err error) {
	var waiting []run.Run
	err = r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		waiting, err = run.ListWaitingSince(ctx, tx, tx.Now.Add(-r.MaxWait), reapBatch)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, one := range waiting {
		err := r.Runs.EndRun(ctx, one, generation.Outcome{
			State: run.Failed, ErrorCode: string(engine.Unavailable), ErrorText: "No worker was free to run this tool in time. Try again later.",
		})
		if err != nil && !errors.Is(err, generation.ErrNotHeld) {
			return 0, err
		}
	}
	return len(waiting), nil
}
