// Package dispatch runs the loops that search a database table for due work and
// start it: background jobs on SQLite, and webhook deliveries.
package dispatch

import "time"

// Loop calls a function whenever there may be work to start.
type Loop struct {
	wake chan struct{} // contains a value if there may be work
}

// NewLoop returns a loop that does not run yet.
func NewLoop() *Loop { return &Loop{wake: make(chan struct{}, 1)} }

// Wake makes a running loop check for work now. It never blocks.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // the channel already contains a value
	}
}

// Run calls start immediately, after each Wake, and when the wait that start
// returned has passed. It returns when stop is closed.
func (l *Loop) Run(stop <-chan struct{}, start func() (wait time.Duration)) {
	for {
		wait := start()

		select {
		case <-stop:
			return
		default: // if several cases are ready, the select below chooses one at random, but stop must win
		}

		select {
		case <-stop:
			return
		case <-l.wake:
		case <-time.After(wait):
		}
	}
}
