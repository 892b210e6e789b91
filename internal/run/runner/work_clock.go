package runner

import (
	"context"
	"sync"
	"time"
)

// workClock measures how long a job works, and how long it waits in the queue
// of its model server. Each of the two times has its own limit. The clock
// starts when the run is claimed and continues through all tries.
type workClock struct {
	now func() time.Time

	mu        sync.Mutex
	isWaiting bool
	since     time.Time     // start of the current phase, which is work or a wait
	work      time.Duration // total time of all earlier phases of work
	wait      time.Duration // total time of all earlier waits

	maxWork time.Duration
	maxWait time.Duration
	timer   *time.Timer             // fires when the current phase reaches its limit
	stop    context.CancelCauseFunc // stops the current try; nil between tries
}

func newWorkClock(now func() time.Time) *workClock { return &workClock{now: now, since: now()} }

// limitTry returns a context for one try. It is cancelled with errTimeout when
// the job has worked for maxWork, and with errQueueTimeout when the job has
// waited for maxWait, each including earlier tries. The deadline of the context
// is the latest time at which the try can end. The caller must call cancel.
func (c *workClock) limitTry(ctx context.Context, maxWork, maxWait time.Duration) (try context.Context, cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, stop := context.WithCancelCause(ctx)
	latest := maxWork - c.workNow() + maxWait - c.wait
	ctx, end := context.WithTimeoutCause(ctx, latest, errTimeout)
	c.maxWork = maxWork
	c.maxWait = maxWait
	c.stop = stop
	c.setTimer()
	return ctx, func() {
		c.endTry()
		end()
		stop(nil)
	}
}

// endTry stops the timer of a try. The time until the next try counts as work.
func (c *workClock) endTry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setPhase(false)
	c.timer.Stop()
	c.stop = nil
}

// setWaiting records whether the job waits in the queue of its model server. It
// does nothing between tries, because an engine that did not return in time may
// still call it then.
func (c *workClock) setWaiting(waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil || c.isWaiting == waiting {
		return
	}
	c.setPhase(waiting)
	c.setTimer()
}

// setPhase ends the current phase and begins the next one. The caller holds
// c.mu.
func (c *workClock) setPhase(waiting bool) {
	c.work = c.workNow()
	c.wait = c.waitNow()
	c.since = c.now()
	c.isWaiting = waiting
}

// setTimer sets the timer to the time when the current phase reaches its limit.
// The caller holds c.mu.
func (c *workClock) setTimer() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer = time.AfterFunc(c.left(), c.stopOverdue)
}

// stopOverdue stops the try if its current phase has reached its limit. The
// phase may have changed since the timer fired.
func (c *workClock) stopOverdue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stop == nil:
	case c.left() > 0:
		c.setTimer()
	case c.isWaiting:
		c.stop(errQueueTimeout)
	default:
		c.stop(errTimeout)
	}
}

// left returns the time until the current phase reaches its limit. The caller
// holds c.mu.
func (c *workClock) left() time.Duration {
	if c.isWaiting {
		return c.maxWait - c.waitNow()
	}
	return c.maxWork - c.workNow()
}

func (c *workClock) workNow() time.Duration {
	if c.isWaiting {
		return c.work
	}
	return c.work + c.now().Sub(c.since)
}

func (c *workClock) waitNow() time.Duration {
	if c.isWaiting {
		return c.wait + c.now().Sub(c.since)
	}
	return c.wait
}

// worked returns how long the job has worked.
func (c *workClock) worked() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workNow()
}

// waited returns how long the job has waited in the queue of its model server,
// without the current wait.
func (c *workClock) waited() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wait
}
