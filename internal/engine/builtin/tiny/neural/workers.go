package neural

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine/builtin/tiny/kernel"
)

// workerPool is a set of threads that compute together. The first of them leads: it runs a task of
// the model and distributes its parallel parts. Two such parts are only microseconds apart, so a
// waiting worker spins for a short while before it sleeps.
//
// Each worker has its own thread with low priority, so that requests are served while it draws.
// Go's scheduler does not take this into account and would make goroutines wait behind the workers,
// so GOMAXPROCS is raised by the number of workers.
type workerPool struct {
	workers []*worker
	tasks   chan func()
	current atomic.Pointer[phase]
	closed  atomic.Bool
	ended   sync.WaitGroup
	failure atomic.Pointer[error]
}

// worker is one thread and its memory.
type worker struct {
	scratch []float32 // for a panel of weights
	tile    []float32 // for rows of a product
	rows    []float32 // for attention
	asleep  atomic.Bool
	wake    chan struct{}
}

// phase is n parts of work that any worker may do. It is over when all are done; a worker that
// comes late finds no part and need not be waited for.
type phase struct {
	work    func(h *worker, i int)
	n       int64
	next    atomic.Int64
	done    atomic.Int64
	waiting atomic.Bool
}

// spinCount is the number of checks before a waiting worker sleeps: some tens of microseconds in
// total.
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

// runTask runs a task on the leading worker and waits for its end.
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

// recoverPanic keeps a panic from ending the program; the task fails instead.
func (c *workerPool) recoverPanic() {
	if p := recover(); p != nil {
		err := fmt.Errorf("computing: %v\n%s", p, debug.Stack())
		c.failure.CompareAndSwap(nil, &err)
	}
}

// runParallel does n parts of work on all workers and returns when they are done. Only the leading
// worker calls it.
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
			<-c.workers[0].wake // the worker of the last part wakes the leader
		}
		break
	}
	p.work = nil // sleeping workers keep the phase, which must not keep pictures alive
}

// doParts does parts of a phase until there are none left.
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

// workLoop is the main loop of every worker but the first.
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

// wakeUp wakes a sleeping worker.
func (h *worker) wakeUp() {
	if h.asleep.CompareAndSwap(true, false) {
		h.wake <- struct{}{}
	}
}

// stopWorkers ends all workers. No task may be running.
func (c *workerPool) stopWorkers() {
	c.closed.Store(true)
	close(c.tasks)
	for _, h := range c.workers[1:] {
		h.wakeUp()
	}
	c.ended.Wait()
	lowpriority.AddProcessors(-len(c.workers))
}
