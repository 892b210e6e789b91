package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"atelier/internal/base/memory"
	"atelier/internal/engine"
)

// maxOutside bounds how many jobs of a pool may be at work, or wait, without a
// place of it.
const maxOutside = 64

// poolSlot is where a job counts: in its pool, or outside of it. Jobs with large
// pictures wait for memory and work outside, on the few places that the budget
// has for them, so that the pool goes on with the runs of others.
type poolSlot struct {
	places  chan struct{}
	outside chan struct{}

	mu    sync.Mutex
	moved bool
	left  bool
}

// moveOutside gives the place in the pool to others, unless too many have done so.
func (s *poolSlot) moveOutside() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved || s.left {
		return
	}
	select {
	case s.outside <- struct{}{}:
		<-s.places
		s.moved = true
	default:
	}
}

// release is for the end of the job.
func (s *poolSlot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	if s.moved {
		<-s.outside
	} else {
		<-s.places
	}
}

// reserveMemory waits for memory for a job until its time is over, or the worker stops.
func (r *Runner) reserveMemory(ctx context.Context, j *job, out *sink, bytes int64) (release func(), err error) {
	lane := memory.Tool
	if bytes > memory.LargeBytes {
		lane = memory.LargeTool
		j.slot.moveOutside()
	}
	got := make(chan struct{})
	defer close(got)
	go func() {
		select {
		case <-got:
		case <-r.stopping: // others can have it now
			j.stop(errStopping)
		}
	}()
	hold, err := r.Memory.Acquire(ctx, memory.Request{Owner: j.run.PersonID, Bytes: bytes, Lane: lane})
	if errors.Is(err, memory.ErrNeverFits) {
		const mega = 1 << 20
		text := fmt.Sprintf("This is too large for the server: the tool would take %d MB of memory, and %d MB can be had.", bytes/mega+1, r.Memory.Most(lane)/mega)
		return nil, engine.Fail(engine.Failed, text)
	}
	if err != nil {
		return nil, err
	}
	out.setReservation(hold)
	return func() {
		out.setReservation(nil)
		if lane == memory.LargeTool {
			debug.FreeOSMemory() // before the memory counts as free, it has to be
		}
		hold.Release()
	}, nil
}
