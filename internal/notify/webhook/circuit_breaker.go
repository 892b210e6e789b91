package webhook

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
)

const (
	// circuitAfter failures in a row open the circuit of a host for
	// circuitFirst. Every failure after that time doubles it, up to circuitMax.
	circuitAfter = 20
	circuitFirst = time.Minute
	circuitMax   = 30 * time.Minute
)

// recordOutcome records the outcome of an attempt, unless another sender has
// the event.
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
		return nil // the host answered correctly, or was not called
	}
	return s.countFailure(ctx, tx, e.host)
}

// countFailure opens the circuit of a host that has failed too often. A failure
// while the circuit is open belongs to an attempt that began before and does
// not count, so beyond circuitAfter the count is the number of times that the
// circuit was closed for another try.
func (s *Sender) countFailure(ctx context.Context, tx *sqldb.Tx, host string) error {
	n, err := addFailure(ctx, tx, host)
	if err != nil || n < circuitAfter {
		return err
	}
	rest := min(circuitFirst<<min(n-circuitAfter, 10), circuitMax)
	tx.AfterCommit(func() { s.o.Log.WarnContext(ctx, "webhook circuit open", "host", host, "for", rest) })
	return openCircuit(ctx, tx, host, tx.Now.Add(rest))
}

// history is the state of an event before an attempt.
type history struct {
	attempts        int // of the schedule
	delivered, gone bool
}

// step is the state of an event after an attempt.
type step struct {
	state    string
	attempts int
	next     time.Time // zero: no further attempt by itself
}

// nextStep returns the state of an event after an attempt at a time.
func nextStep(schedule []time.Duration, before history, o outcome, now time.Time) step {
	n := before.attempts
	if !before.delivered && !before.gone && n <= len(schedule) {
		n++ // an attempt after the end is by hand and not part of the schedule
	}
	switch {
	case o.isDelivered(), before.delivered:
		return step{Delivered, n, time.Time{}}
	case o.status == http.StatusGone, before.gone:
		return step{Gone, n, time.Time{}}
	case n > len(schedule):
		return step{Exhausted, n, time.Time{}}
	}
	wait := time.Duration(float64(schedule[n-1]) * (0.8 + 0.4*rand.Float64())) // jitter: events that failed together are not retried together
	return step{Waiting, n, now.Add(max(wait, o.retryAfter))}
}
