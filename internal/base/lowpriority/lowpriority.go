// Package lowpriority runs long computations on threads of low priority.
//
// The operating system schedules such threads after others, so requests are
// still answered quickly. Go's scheduler does not know about priorities and
// would make other goroutines wait for these threads; so GOMAXPROCS is raised by
// one for each low-priority thread.
package lowpriority

import (
	"runtime"
	"sync"
)

// Lower locks the calling goroutine to its thread and lowers the thread's
// priority. This cannot be undone: the thread ends with the goroutine.
func Lower() {
	runtime.LockOSThread()
	yieldToOthers()
}

// Do runs work on a thread of low priority and waits for it. A panic of work is
// repeated in the caller.
func Do(work func()) {
	AddProcessors(1)
	defer AddProcessors(-1)
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		Lower()
		work()
	}()
	if p := <-ended; p != nil {
		panic(p)
	}
}

var (
	turning sync.Mutex
	lent    loan
)

// AddProcessors raises GOMAXPROCS by n, or lowers it by -n.
func AddProcessors(n int) {
	turning.Lock()
	defer turning.Unlock()
	runtime.GOMAXPROCS(lent.changeTurns(runtime.GOMAXPROCS(0), n))
}

// Cores returns GOMAXPROCS without the share of low-priority threads.
func Cores() int {
	turning.Lock()
	defer turning.Unlock()
	return max(1, lent.ownTurns(runtime.GOMAXPROCS(0)))
}

// loan is the part of GOMAXPROCS that AddProcessors has added.
type loan struct {
	added int
	left  int // GOMAXPROCS after the last change
}

// changeTurns adds n and returns the new GOMAXPROCS. If other code has changed
// GOMAXPROCS since the last call, the current value is the new base and the loan
// is reset to zero.
func (l *loan) changeTurns(now, n int) int {
	if now != l.left {
		l.added = 0
	}
	before := l.added
	l.added = max(0, before+n)
	l.left = now + l.added - before
	return l.left
}

// ownTurns returns GOMAXPROCS without the loan.
func (l *loan) ownTurns(now int) int {
	if now != l.left {
		return now
	}
	return now - l.added
}
