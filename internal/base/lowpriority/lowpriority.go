// Package lowpriority runs work that comes after everything else.
//
// A thread that computes for long asks the system to come after others, so that
// requests are answered meanwhile. Go's scheduler knows nothing of that and would
// let goroutines wait for a turn behind it; so it gets one more turn to give for
// each such thread.
package lowpriority

import (
	"runtime"
	"sync"
)

// Lower makes the calling goroutine come after others. That cannot be undone: the
// thread is the goroutine's own and ends with it.
func Lower() {
	runtime.LockOSThread()
	yieldToOthers()
}

// Do does work on a thread of its own that comes after others, and waits for its
// end. It panics as the work does.
func Do(work func()) {
	AddTurns(1)
	defer AddTurns(-1)
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

// AddTurns lets n goroutines more run at the same time, or -n fewer.
func AddTurns(n int) {
	turning.Lock()
	defer turning.Unlock()
	runtime.GOMAXPROCS(lent.changeTurns(runtime.GOMAXPROCS(0), n))
}

// Cores is how many goroutines run at the same time that are not in the
// background.
func Cores() int {
	turning.Lock()
	defer turning.Unlock()
	return max(1, lent.ownTurns(runtime.GOMAXPROCS(0)))
}

// A loan is turns that work in the background has added to a number which is not theirs alone.
type loan struct {
	added int
	left  int // what the number was after the last change
}

// changeTurns adds n turns, or gives -n back, and tells the new number. Somebody
// who has set it since meant it: then nothing is left of what was added before.
func (l *loan) changeTurns(now, n int) int {
	if now != l.left {
		l.added = 0
	}
	before := l.added
	l.added = max(0, before+n)
	l.left = now + l.added - before
	return l.left
}

// ownTurns is the number without what was added.
func (l *loan) ownTurns(now int) int {
	if now != l.left {
		return now
	}
	return now - l.added
}
