package runner

import "context"

// Reap does once what Run does now and then.
func (r *Runner) Reap(ctx context.Context) error { return r.reap(ctx) }

// Step claims a run and works on it, with nobody else awake.
func (r *Runner) Step(ctx context.Context, engine string) bool {
	p := r.pools[engine]
	j, ok := r.claim(ctx, p)
	if ok {
		r.do(ctx, p, j)
	}
	return ok
}

// Busy is how many jobs there are.
func (r *Runner) Busy() int { return len(r.jobs()) }
