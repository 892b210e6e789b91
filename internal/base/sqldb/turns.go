package sqldb

import (
	"context"
	"slices"
	"sync"
)

// turns decides which goroutine may use the writing connection of SQLite.
// Goroutines get their turns in the order in which they asked for them.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []*waiter
}

// waiter is a goroutine that waits for its turn.
type waiter struct {
	ready chan struct{} // closed when the turn of the goroutine has come
	joins bool          // the goroutine can continue an open transaction
}

// tryTake takes the turn if it is free.
func (t *turns) tryTake() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// take waits for the turn until ctx ends. joins says that the goroutine can
// continue an open transaction. If take returns nil, the caller has the turn and
// must pass it on, even if ctx has ended in the meantime.
func (t *turns) take(ctx context.Context, joins bool) error {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return nil
	}
	w := &waiter{ready: make(chan struct{}), joins: joins}
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i < 0 {
		return nil // the turn came at the same moment
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return ctx.Err()
}

// pass ends the caller's turn. No transaction may be open.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	t.wakeFirst()
}

// passToJoiner ends the caller's turn if the goroutine whose turn comes next can
// continue the open transaction. Otherwise it changes nothing and returns false.
func (t *turns) passToJoiner() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 || !t.waiting[0].joins {
		return false
	}
	t.wakeFirst()
	return true
}

// wakeFirst gives the turn to the goroutine that has waited longest. The caller
// must have locked mu.
func (t *turns) wakeFirst() {
	close(t.waiting[0].ready)
	t.waiting = slices.Delete(t.waiting, 0, 1)
}

// isFree reports whether no goroutine has the turn.
func (t *turns) isFree() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.taken
}
