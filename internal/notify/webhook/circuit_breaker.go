package webhook

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
)

const (
	// circuitAfter failures in a row leave a host alone for circuitFirst. Every
	// failure after such a time doubles it, up to circuitMost.
	circuitAfter = 20
	circuitFirst = time.Minute
	circuitMost  = 30 * time.Minute
)

// record writes an outcome down, unless the event was taken over.
func (s *Sender) record(ctx context.Context, tx *sqldb.Tx, e due, o outcome) error {
	before, held, err := lockLeased(ctx, tx, e)
	if err != nil || !held {
		return err
	}
	if err := insertAttempt(ctx, tx, e, o); err != nil {
		return err
	}
	next := after(s.o.Schedule, before, o, tx.Now)
	if err := settle(ctx, tx, e, next); err != nil {
		return err
	}
	if next.state != Waiting {
		tx.AfterCommit(func() { s.metrics.ended.WithLabelValues(next.state).Inc() })
	}
	switch {
	case o.delivered():
		return forgetFailures(ctx, tx, e.host)
	case o.status == http.StatusGone || o.word == failInternal:
		return nil // the host did as it should, or was not asked
	}
	return s.countFailure(ctx, tx, e.host)
}

// countFailure leaves a host alone when it has failed too often. What fails
// while it is left alone was under way before and counts for nothing, so beyond
// circuitAfter the count is the number of times it was given another chance.
func (s *Sender) countFailure(ctx context.Context, tx *sqldb.Tx, host string) error {
	n, err := addFailure(ctx, tx, host)
	if err != nil || n < circuitAfter {
		return err
	}
	rest := min(circuitFirst<<min(n-circuitAfter, 10), circuitMost)
	tx.AfterCommit(func() { s.o.Log.WarnContext(ctx, "a receiver is left alone", "host", host, "for", rest) })
	return openCircuit(ctx, tx, host, tx.Now.Add(rest))
}

// standing is how an event stood before an attempt.
type standing struct {
	attempts        int // of the schedule
	delivered, gone bool
}

// course is how it goes on.
type course struct {
	state    string
	attempts int
	next     time.Time // zero: not by itself
}

// after says how an event goes on after an attempt at a time.
func after(schedule []time.Duration, before standing, o outcome, now time.Time) course {
	n := before.attempts
	if !before.delivered && !before.gone && n <= len(schedule) {
		n++ // what comes after the end is by hand and none of the schedule's
	}
	switch {
	case o.delivered(), before.delivered:
		return course{Delivered, n, time.Time{}}
	case o.status == http.StatusGone, before.gone:
		return course{Gone, n, time.Time{}}
	case n > len(schedule):
		return course{Exhausted, n, time.Time{}}
	}
	wait := time.Duration(float64(schedule[n-1]) * (0.8 + 0.4*rand.Float64())) // so that what failed together does not come back together
	return course{Waiting, n, now.Add(max(wait, o.retryAfter))}
}
