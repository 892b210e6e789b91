package generation

import (
	"cmp"
	"sync/atomic"
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/run/run"
)

// pacing decides how long clients should wait between polls.
type pacing struct {
	min, max    time.Duration
	unavailable atomic.Pointer[map[string]time.Time] // unavailable engines, with the time when each became unavailable
}

// isUnavailable reports whether the server of an engine is unavailable.
func (p *pacing) isUnavailable(engine string) bool {
	engines := p.unavailable.Load()
	if engines == nil {
		return false
	}
	_, found := (*engines)[engine]
	return found
}

// pollAfter returns how long a client should wait between polls of a new run:
// about as long as a result takes, or the maximum while the engine is
// unavailable.
func (p *pacing) pollAfter(t *catalog.Tool) time.Duration {
	if p.isUnavailable(t.Engine.Name) {
		return p.max
	}
	wait := cmp.Or(t.RecentDuration, t.AverageDuration, 2*time.Second)
	wait = (wait + time.Second - 1).Truncate(time.Second)
	return min(max(wait, p.min), p.max)
}

// retryAfter returns how long a client should wait before the next poll of r.
// For a run in the queue of its model server, this is about as long as the jobs
// before it take. It assumes that these jobs take as long as the run itself.
func (p *pacing) retryAfter(r run.Run) time.Duration {
	if !r.State.IsEnded() && p.isUnavailable(r.Engine) {
		return max(r.PollAfter, p.max)
	}
	if r.IsWaitingAtServer() && *r.ServerPosition > 1 {
		jobs := min(*r.ServerPosition, int64(p.max/time.Second))
		return max(r.PollAfter, min(time.Duration(jobs)*r.PollAfter, p.max))
	}
	return r.PollAfter
}
