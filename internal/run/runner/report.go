package runner

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"atelier/internal/base/sanitize"
	"atelier/internal/engine"
	"atelier/internal/run/node"
)

// WorkerID returns the name with which this process claims runs.
func (r *Runner) WorkerID() string { return r.worker }

// Engines returns the state of the engines of this node, ordered by name.
func (r *Runner) Engines() []node.Engine {
	running := map[string]int64{}
	r.mu.Lock()
	for j := range r.current {
		running[j.run.Engine]++
	}
	r.mu.Unlock()

	engines := make([]node.Engine, 0, len(r.slotPools))
	for name, p := range r.slotPools {
		engines = append(engines, node.Engine{
			Name:      name,
			Pool:      p.Pool,
			Available: !p.unavailable.Load(),
			Capacity:  int64(p.Parallel),
			Limit:     int64(p.Limit),
			Running:   running[name],
			Failure:   p.failure.Load(),
		})
	}
	slices.SortFunc(engines, func(a, b node.Engine) int { return cmp.Compare(a.Name, b.Name) })
	return engines
}

// maxCause is the maximum length of the message of a failure, in bytes.
const maxCause = 300

// recordUnreachable records that the server of the engine could not be reached.
func (p *slotPool) recordUnreachable(now time.Time, cause error) {
	if e, ok := errors.AsType[*engine.Error](cause); ok {
		cause = e.Unwrap() // its message is for the person who started the run
	}
	message := ""
	if cause != nil {
		message = sanitize.Line(cause.Error(), maxCause)
	}
	p.failure.Store(&node.Failure{
		Code:    string(engine.Unavailable),
		Message: message,
		At:      now,
	})
}

// recordFailed records that a run failed with an error code.
func (p *slotPool) recordFailed(now time.Time, code engine.Code) {
	p.failure.Store(&node.Failure{Code: string(code), At: now})
}
