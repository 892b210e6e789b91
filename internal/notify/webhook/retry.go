package webhook

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"atelier/internal/base/sqldb"
)

// recordOutcome stores the outcome of an attempt, unless another sender has
// taken over the event in the meantime.
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
		return nil // the host responded correctly, or no request was sent
	}
	return s.countFailure(ctx, tx, e.host)
}

// nextStep returns the state of an event after an attempt that ended at the
// time now with the outcome o.
func nextStep(schedule []time.Duration, before history, o outcome, now time.Time) step {
	n := before.attempts
	if !before.delivered && !before.gone && n <= len(schedule) {
		n++ // manual redeliveries of an event in a final state do not count
	}
	switch {
	case o.isDelivered(), before.delivered:
		return step{Delivered, n, time.Time{}}
	case o.status == http.StatusGone, before.gone:
		return step{Gone, n, time.Time{}}
	case n > len(schedule):
		return step{Exhausted, n, time.Time{}}
	}
	wait := time.Duration(float64(schedule[n-1]) * (0.8 + 0.4*rand.Float64())) // random, so that events that failed together are not retried together
	return step{Waiting, n, now.Add(max(wait, o.retryAfter))}
}
