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

// maxOutside is the maximum number of jobs of a slot pool that may work, or wait for
// memory, after they have released their slot in the slot pool.
const maxOutside = 64

// poolSlot is the slot that a job occupies, in its slot pool or outside of it. Jobs
// with large pictures release their slot in the slot pool while they wait for memory
// and work, so that the slot pool can continue with the runs of other people. The
// memory budget limits how many of these jobs work at the same time.
type poolSlot struct {
	slots   chan struct{}
	outside chan struct{}

	mu    sync.Mutex
	moved bool
	left  bool
}

// moveOutside frees the slot in the slot pool, unless maxOutside jobs are already
// outside of the slot pool.
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

// releaseSlot frees the slot, in the slot pool or outside of it, at the end of the
// job.
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

// reserveMemory waits for memory for a job until ctx ends or the worker stops.
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
		case <-r.stopping: // this worker is stopping; another worker can run the job sooner
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
			debug.FreeOSMemory() // returns the memory to the operating system before the budget counts it as free
		}
		hold.Release()
	}, nil
}
