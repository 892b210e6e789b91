package neural

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine/builtin/tiny/kernel"
)

// A crew is threads that compute together. The first of them leads: it runs
// what the model is asked for, and hands out the parts of it that can be done
// at the same time. Between two such parts there are microseconds, so whoever
// waits looks again and again for a short while before it lies down.
//
// Each thread is the crew's own and asks the system to come after others, so
// that requests are answered while it draws. Go's scheduler knows nothing of
// that and would let goroutines wait for a turn behind the crew; so it gets as
// many more turns to give as the crew takes.
type crew struct {
	hands   []*hand
	tasks   chan func()
	current atomic.Pointer[phase]
	closed  atomic.Bool
	ended   sync.WaitGroup
	failure atomic.Pointer[error]
}

// A hand is one thread and the memory it works in.
type hand struct {
	room []float32 // a panel of weights
	tile []float32 // rows of a product that are used at once
	rows []float32 // attention
	down atomic.Bool
	wake chan struct{}
}

// A phase is n parts of work that anybody may take. It is over when all are
// done; a hand that comes late finds nothing to take, and nobody waits for it.
type phase struct {
	work    func(h *hand, i int)
	n       int64
	next    atomic.Int64
	done    atomic.Int64
	waiting atomic.Bool
}

// looks is how often somebody who waits looks before lying down: some tens of
// microseconds in all.
const looks, pause = 100, 8

func newCrew(hands []*hand) *crew {
	c := &crew{hands: hands, tasks: make(chan func())}
	c.current.Store(&phase{})
	lowpriority.AddTurns(len(hands))
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
			c.follow(h)
		}()
	}
	return c
}

// run has the leader do a task and waits for its end.
func (c *crew) run(task func()) error {
	done := make(chan error, 1)
	c.tasks <- func() {
		c.failure.Store(nil)
		func() {
			defer c.catch()
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

// catch keeps a panic from ending the program; the task fails instead.
func (c *crew) catch() {
	if p := recover(); p != nil {
		err := fmt.Errorf("computing: %v\n%s", p, debug.Stack())
		c.failure.CompareAndSwap(nil, &err)
	}
}

// each does n parts of work on all hands and returns when they are done. Only
// the leader calls it.
func (c *crew) each(n int, work func(h *hand, i int)) {
	if len(c.hands) == 1 || n == 1 {
		for i := range n {
			work(c.hands[0], i)
		}
		return
	}
	p := &phase{work: work, n: int64(n)}
	c.current.Store(p)
	for _, h := range c.hands[1:] {
		h.rouse()
	}
	c.take(c.hands[0], p)
	for look := 0; p.done.Load() < p.n; look++ {
		if look < looks {
			kernel.Relax(pause)
			continue
		}
		p.waiting.Store(true)
		if p.done.Load() < p.n {
			<-c.hands[0].wake
		} else if !p.waiting.CompareAndSwap(true, false) {
			<-c.hands[0].wake // the last one has seen that somebody waits
		}
		break
	}
	p.work = nil // hands that lie down keep the phase, but must not keep pictures
}

// take does parts of a phase as long as there are any.
func (c *crew) take(h *hand, p *phase) {
	for {
		i := p.next.Add(1) - 1
		if i >= p.n {
			return
		}
		c.part(h, p, int(i))
	}
}

func (c *crew) part(h *hand, p *phase, i int) {
	defer func() {
		if p.done.Add(1) == p.n && p.waiting.CompareAndSwap(true, false) {
			c.hands[0].wake <- struct{}{}
		}
	}()
	defer c.catch()
	p.work(h, i)
}

// follow is the life of every hand but the first.
func (c *crew) follow(h *hand) {
	var seen *phase
	for look := 0; ; look++ {
		if p := c.current.Load(); p != seen {
			seen = p
			look = 0
			c.take(h, p)
			continue
		}
		if c.closed.Load() {
			return
		}
		if look < looks {
			kernel.Relax(pause)
			continue
		}
		look = 0
		h.down.Store(true)
		if (c.current.Load() != seen || c.closed.Load()) && h.down.CompareAndSwap(true, false) {
			continue
		}
		<-h.wake
	}
}

// rouse wakes a hand that has lain down.
func (h *hand) rouse() {
	if h.down.CompareAndSwap(true, false) {
		h.wake <- struct{}{}
	}
}

// end sends everybody home. No task may be running.
func (c *crew) end() {
	c.closed.Store(true)
	close(c.tasks)
	for _, h := range c.hands[1:] {
		h.rouse()
	}
	c.ended.Wait()
	lowpriority.AddTurns(-len(c.hands))
}
