package runner

import (
	"context"
	"maps"
	"slices"

	"atelier/internal/base/sqldb"
	"atelier/internal/run/run"
)

// checkCancelled stops the jobs whose runs were cancelled on any node.
func (r *Runner) checkCancelled(ctx context.Context) error {
	jobs := r.currentJobs()
	if len(jobs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Lease)
	defer cancel()
	var held []run.Lease
	err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { held, err = run.ListLeases(ctx, tx, r.worker); return err })
	if err == nil {
		stopOver(jobs, held)
	}
	return err
}

// renewLeases renews the leases of all jobs. If this has failed for as long as
// a lease lasts, it stops the jobs, because other workers may have taken over
// the runs.
func (r *Runner) renewLeases(ctx context.Context) error {
	jobs := r.currentJobs()
	if len(jobs) == 0 {
		return nil
	}
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.run.ID
	}
	ctx, cancel := context.WithTimeout(ctx, r.Lease)
	defer cancel()
	var held []run.Lease
	asked := r.Now()
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		held, err = run.RenewLeases(ctx, tx, r.worker, ids, r.Lease)
		return err
	})
	r.mu.Lock()
	if err == nil {
		r.renewed = asked
	}
	overdue := r.Now().Sub(r.renewed) > r.Lease
	r.mu.Unlock()
	if err == nil {
		stopOver(jobs, held)
	} else if overdue {
		stopOver(jobs, nil)
	}
	return err
}

// currentJobs returns the jobs of this process. If there are none, it resets
// the time of the last renewal, since no lease can be overdue.
func (r *Runner) currentJobs() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.current) == 0 {
		r.renewed = r.Now()
	}
	return slices.Collect(maps.Keys(r.current))
}

// stopOver stops the jobs whose lease is not in held, and the jobs whose
// cancellation was requested. The list of jobs must have been made before held
// was read from the database.
func stopOver(jobs []*job, held []run.Lease) {
	claims := make(map[string]run.Lease, len(held))
	for _, h := range held {
		claims[h.ID] = h
	}
	for _, j := range jobs {
		switch h, ok := claims[j.run.ID]; {
		case !ok || h.Attempt != j.run.Attempt:
			j.stop(errLost)
		case h.Cancel:
			j.stop(errCancelled)
		}
	}
}
