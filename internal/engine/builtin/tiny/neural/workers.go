package neural

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine/builtin/tiny/kernel"
)

// workerPool is a set of threads that compute together. The first thread leads:
// it runs a task of the model and distributes the parallel parts of it.
// Parallel parts follow each other within microseconds, so a waiting worker
// spins for a short time before it sleeps.
//
// Each worker has its own operating system thread with low priority, so that
// requests are served while it computes. Go's scheduler does not know about
// priorities and would make other goroutines wait for the workers, so
// GOMAXPROCS is raised by the number of workers.
type workerPool struct {
	workers []*worker
	tasks   chan func()
	current atomic.Pointer[phase]
	closed  atomic.Bool
	ended   sync.WaitGroup
	failure atomic.Pointer[error]
}

// worker is a thread with its own scratch memory.
type worker struct {
	scratch []float32 // scratch memory for a panel of weights
	tile    []float32 // scratch memory for rows of a product
	rows    []float32 // scratch memory for attention
	asleep  atomic.Bool
	wake    chan struct{}
}

// phase is parallel work that is divided into n parts, which any worker may do.
// It ends when all parts are done. A worker that arrives late finds no part
// left, so the other workers need not wait for it.
type phase struct {
	work    func(h *worker, i int)
	n       int64
	next    atomic.Int64
	done    atomic.Int64
	waiting atomic.Bool
}

// spinCount is the number of times that a waiting worker checks for work before
// it sleeps. Together with the pauses of spinPause between the checks, this
// wait takes some tens of microseconds.
const spinCount, spinPause = 100, 8

func newWorkerPool(hands []*worker) *workerPool {
	c := &workerPool{workers: hands, tasks: make(chan func())}
	c.current.Store(&phase{})
	lowpriority.AddProcessors(len(hands))
	for i, h := range hands {
		h.wake = make(chan struct{}, 1)
		c.ended.Add(1)
		go func() {
			defer c.ended.Done()
			lowpriority.Lower()
			if i == 0 {
				for task := range c.tasks {
					task()
				}
				return
			}
			c.workLoop(h)
		}()
	}
	return c
}

// runTask runs a task on the leading worker and waits until it ends. It returns
// an error if a worker panicked.
func (c *workerPool) runTask(task func()) error {
	done := make(chan error, 1)
	c.tasks <- func() {
		c.failure.Store(nil)
		func() {
			defer c.recoverPanic()
			task()
		}()
		if err := c.failure.Load(); err != nil {
			done <- *err
			return
		}
		done <- nil
	}
	return <-done
}

// recoverPanic recovers from a panic, which would crash the program, and makes
// the task fail instead.
func (c *workerPool) recoverPanic() {
	if p := recover(); p != nil {
		err := fmt.Errorf("panic in a worker of the picture model: %v\n%s", p, debug.Stack())
		c.failure.CompareAndSwap(nil, &err)
	}
}

// runParallel calls work for each i from 0 to n-1 on all workers and returns
// when all calls have ended. It must be called by the leading worker.
func (c *workerPool) runParallel(n int, work func(h *worker, i int)) {
	if len(c.workers) == 1 || n == 1 {
		for i := range n {
			work(c.workers[0], i)
		}
		return
	}
	p := &phase{work: work, n: int64(n)}
	c.current.Store(p)
	for _, h := range c.workers[1:] {
		h.wakeUp()
	}
	c.doParts(c.workers[0], p)
	for look := 0; p.done.Load() < p.n; look++ {
		if look < spinCount {
			kernel.Relax(spinPause)
			continue
		}
		p.waiting.Store(true)
		if p.done.Load() < p.n {
			<-c.workers[0].wake
		} else if !p.waiting.CompareAndSwap(true, false) {
			<-c.workers[0].wake // the worker that did the last part sends the wake-up
		}
		break
	}
	p.work = nil // sleeping workers still refer to the phase, and work may refer to large pictures
}

// doParts does parts of a phase until none is left.
func (c *workerPool) doParts(h *worker, p *phase) {
	for {
		i := p.next.Add(1) - 1
		if i >= p.n {
			return
		}
		c.doPart(h, p, int(i))
	}
}

func (c *workerPool) doPart(h *worker, p *phase, i int) {
	defer func() {
		if p.done.Add(1) == p.n && p.waiting.CompareAndSwap(true, false) {
			c.workers[0].wake <- struct{}{}
		}
	}()
	defer c.recoverPanic()
	p.work(h, i)
}

// workLoop is the main loop of all workers except the first.
func (c *workerPool) workLoop(h *worker) {
	var seen *phase
	for look := 0; ; look++ {
		if p := c.current.Load(); p != seen {
			seen = p
			look = 0
			c.doParts(h, p)
			continue
		}
		if c.closed.Load() {
			return
		}
		if look < spinCount {
			kernel.Relax(spinPause)
			continue
		}
		look = 0
		h.asleep.Store(true)
		if (c.current.Load() != seen || c.closed.Load()) && h.asleep.CompareAndSwap(true, false) {
			continue
		}
		<-h.wake
	}
}

// wakeUp wakes the worker if it is asleep.
func (h *worker) wakeUp() {
	if h.asleep.CompareAndSwap(true, false) {
		h.wake <- struct{}{}
	}
}

// stopWorkers stops all workers and waits until they have ended. It must not be
// called while a task runs.
func (c *workerPool) stopWorkers() {
	c.closed.Store(true)
	close(c.tasks)
	for _, h := range c.workers[1:] {
		h.wakeUp()
	}
	c.ended.Wait()
	lowpriority.AddProcessors(-len(c.workers))
}
