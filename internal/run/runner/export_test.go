package runner

import "context"

// Reap does once what Run does now and then.
func (r *Runner) Reap(ctx context.Context) error { return reaper{r}.reapRuns(ctx) }

// Step claims a run and works on it, with nobody else awake.
func (r *Runner) Step(ctx context.Context, engine string) bool {
	p := r.slotPools[engine]
	j, ok := r.claimNext(ctx, p)
	if ok {
		r.runJob(ctx, p, j)
	}
	return ok
}

// Busy is how many jobs there are.
func (r *Runner) Busy() int { return len(r.currentJobs()) }

// Announce says which engines are here, as Run does when it begins.
func (r *Runner) Announce(ctx context.Context) error {
	r.began = r.DB.Now()
	return r.reportServed(ctx)
}

// GiveUpUnserved looks once for runs whose engine nobody has.
func (r *Runner) GiveUpUnserved(ctx context.Context) error {
	_, err := reaper{r}.failUnserved(ctx)
	return err
}
