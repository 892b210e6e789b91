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
	circuitMax   = 30 * time.Minute
)

// recordOutcome writes an outcome down, unless the event was taken over.
func (s *Sender) recordOutcome(ctx context.Context, tx *sqldb.Tx, e dueEvent, o outcome) error {
	before, held, err := lockLeased(ctx, tx, e)
	if err != nil || !held {
		return err
	}
	if err := insertAttempt(ctx, tx, e, o); err != nil {
		return err
	}
	next := nextStep(s.o.Schedule, before, o, tx.Now)
	if err := setOutcome(ctx, tx, e, next); err != nil {
		return err
	}
	if next.state != Waiting {
		tx.AfterCommit(func() { s.metrics.ended.WithLabelValues(next.state).Inc() })
	}
	switch {
	case o.isDelivered():
		return deleteFailures(ctx, tx, e.host)
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
	rest := min(circuitFirst<<min(n-circuitAfter, 10), circuitMax)
	tx.AfterCommit(func() { s.o.Log.WarnContext(ctx, "a receiver is left alone", "host", host, "for", rest) })
	return openCircuit(ctx, tx, host, tx.Now.Add(rest))
}

// history is how an event stood before an attempt.
type history struct {
	attempts        int // of the schedule
	delivered, gone bool
}

// step is how it goes on.
type step struct {
	state    string
	attempts int
	next     time.Time // zero: not by itself
}

// nextStep says how an event goes on after an attempt at a time.
func nextStep(schedule []time.Duration, before history, o outcome, now time.Time) step {
	n := before.attempts
	if !before.delivered && !before.gone && n <= len(schedule) {
		n++ // what comes after the end is by hand and none of the schedule's
	}
	switch {
	case o.isDelivered(), before.delivered:
		return step{Delivered, n, time.Time{}}
	case o.status == http.StatusGone, before.gone:
		return step{Gone, n, time.Time{}}
	case n > len(schedule):
		return step{Exhausted, n, time.Time{}}
	}
	wait := time.Duration(float64(schedule[n-1]) * (0.8 + 0.4*rand.Float64())) // so that what failed together does not come back together
	return step{Waiting, n, now.Add(max(wait, o.retryAfter))}
}
