// Package lowpriority runs long computations on operating system threads with
// low priority.
//
// The operating system runs other threads first, so requests are still handled
// quickly. Go's scheduler does not know about priorities: a low-priority thread
// that does not get to run would block one of its GOMAXPROCS processors. So
// GOMAXPROCS is raised by one for each low-priority thread.
package lowpriority

import (
	"runtime"
	"sync"
)

// Lower locks the calling goroutine to its thread and lowers the priority of
// the thread. This cannot be undone: the thread exits together with the
// goroutine.
func Lower() {
	runtime.LockOSThread()
	yieldToOthers()
}

// Do runs work on a low-priority thread and waits until it returns. If work
// panics, Do panics with the same value.
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

// AddProcessors raises GOMAXPROCS by n. A negative n lowers it.
func AddProcessors(n int) {
	turning.Lock()
	defer turning.Unlock()
	runtime.GOMAXPROCS(lent.changeTurns(runtime.GOMAXPROCS(0), n))
}

// Cores returns GOMAXPROCS minus the number that AddProcessors has added to it.
func Cores() int {
	turning.Lock()
	defer turning.Unlock()
	return max(1, lent.ownTurns(runtime.GOMAXPROCS(0)))
}

// loan keeps track of how much AddProcessors has added to GOMAXPROCS.
type loan struct {
	added int
	left  int // the value of GOMAXPROCS after the last change
}

// changeTurns returns the new GOMAXPROCS after adding n, where now is the
// current value. If other code has changed GOMAXPROCS since the last call,
// changeTurns takes now as the new base value and forgets its earlier
// additions.
func (l *loan) changeTurns(now, n int) int {
	if now != l.left {
		l.added = 0
	}
	before := l.added
	l.added = max(0, before+n)
	l.left = now + l.added - before
	return l.left
}

// ownTurns returns GOMAXPROCS without the number that AddProcessors has added,
// where now is the current value of GOMAXPROCS.
func (l *loan) ownTurns(now int) int {
	if now != l.left {
		return now
	}
	return now - l.added
}
