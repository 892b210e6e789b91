package webhook

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Backlog describes the webhook events that are waiting to be sent, on all
// nodes together.
type Backlog struct {
	Waiting int64     // number of waiting events, at most countedEvents
	Due     time.Time // due time of the most overdue event; zero if none is overdue
	Paused  int64     // number of hosts with an open circuit breaker, at most countedEvents
}

// countedEvents is the maximum number of rows that ReadBacklog counts.
const countedEvents = 20_000

// ReadBacklog reads the backlog from the database.
func ReadBacklog(ctx context.Context, tx *sqldb.Tx) (b Backlog, err error) {
	if b.Waiting, err = countEvents(ctx, tx); err != nil {
		return b, fmt.Errorf("count events: %w", err)
	}
	first, err := firstDue(ctx, tx)
	if err != nil {
		return b, fmt.Errorf("find overdue event: %w", err)
	}
	if !first.IsZero() && first.Before(tx.Now) {
		b.Due = first
	}
	if b.Paused, err = countPaused(ctx, tx); err != nil {
		return b, fmt.Errorf("count paused hosts: %w", err)
	}
	return b, nil
}
