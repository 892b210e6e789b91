package webhook

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

const (
	// After circuitAfter consecutive failures, the circuit breaker of a host
	// opens for the time circuitFirst, during which no events are sent to the
	// host. Each further failure doubles this time, up to circuitMax.
	circuitAfter = 20
	circuitFirst = time.Minute
	circuitMax   = 30 * time.Minute
)

// countFailure counts a failure of a host, and opens its circuit breaker after
// too many. A failure while the circuit breaker is open belongs to an attempt
// that began earlier and does not count. Therefore each counted failure above
// circuitAfter belongs to an attempt that began after a pause.
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
	attempts        int // number of scheduled attempts so far
	delivered, gone bool
}

// step is the state of an event after an attempt.
type step struct {
	state    string
	attempts int
	next     time.Time // time of the next attempt; zero if none is scheduled
}
