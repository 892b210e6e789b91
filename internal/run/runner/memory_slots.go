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

// maxOutside is the number of jobs of a pool that may work, or wait, without a
// slot of it.
const maxOutside = 64

// poolSlot is the slot of a job: in its pool, or outside of it. Jobs with large
// pictures wait for memory and work outside, in the few lanes that the memory
// budget has for them, so that the pool continues with the runs of others.
type poolSlot struct {
	slots   chan struct{}
	outside chan struct{}

	mu    sync.Mutex
	moved bool
	left  bool
}

// moveOutside frees the slot in the pool, unless too many jobs have done so.
func (s *poolSlot) moveOutside() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved || s.left {
		return
	}
	select {
	case s.outside <- struct{}{}:
		<-s.slots
		s.moved = true
	default:
	}
}

// releaseSlot frees the slot at the end of the job.
func (s *poolSlot) releaseSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	if s.moved {
		<-s.outside
	} else {
		<-s.slots
	}
}

// reserveMemory waits for memory for a job until its time is over, or the
// worker stops.
func (r *Runner) reserveMemory(ctx context.Context, j *job, out *sink, bytes int64) (release func(), err error) {
	lane := memory.Tool
	if bytes > memory.LargeBytes {
		lane = memory.LargeTool
		j.slot.moveOutside()
	}
	acquired := make(chan struct{})
	defer close(acquired)
	go func() {
		select {
		case <-acquired:
		case <-r.stopping: // another worker can have the run now
			j.stop(errStopping)
		}
	}()
	hold, err := r.Memory.Acquire(ctx, memory.Request{Owner: j.run.PersonID, Bytes: bytes, Lane: lane})
	if errors.Is(err, memory.ErrNeverFits) {
		const mega = 1 << 20
		text := fmt.Sprintf("This input is too large for the server: the tool needs %d MB of memory, and the limit is %d MB.", bytes/mega+1, r.Memory.MaxBytes(lane)/mega)
		return nil, engine.Fail(engine.Failed, text)
	}
	if err != nil {
		return nil, err
	}
	out.setReservation(hold)
	return func() {
		out.setReservation(nil)
		if lane == memory.LargeTool {
			debug.FreeOSMemory() // the memory must be free before it counts as free
		}
		hold.Release()
	}, nil
}
