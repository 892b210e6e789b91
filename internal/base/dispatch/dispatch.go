// Package dispatch runs the loops that look for due work in a table and start
// it: jobs on SQLite, webhook events.
package dispatch

import "time"

// Loop calls a function whenever there may be work to start.
type Loop struct {
	wake chan struct{} // holds one token: there may be work
}

// NewLoop returns a loop that does not run yet.
func NewLoop() *Loop { return &Loop{wake: make(chan struct{}, 1)} }

// Wake makes a running loop look for work now. It never blocks.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // a token is already in the channel
	}
}

// Run calls start until stop is closed: first at once, then after each Wake and
// at the latest after the wait that start returned.
func (l *Loop) Run(stop <-chan struct{}, start func() (wait time.Duration)) {
	for {
		wait := start()

		select {
		case <-stop:
			return
		default: // the select below picks any ready case, and stop has priority
		}

		select {
		case <-stop:
			return
		case <-l.wake:
		case <-time.After(wait):
		}
	}
}
