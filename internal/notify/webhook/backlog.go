package webhook

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Backlog is the events that wait to be sent, on all nodes together.
type Backlog struct {
	Waiting int64     // events, up to countedEvents
	Due     time.Time // when the most overdue event was due; zero: none is overdue
	Paused  int64     // hosts with an open circuit, up to countedEvents
}

// countedEvents is the number of rows that ReadBacklog counts at most.
const countedEvents = 20_000

// ReadBacklog reads the backlog.
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
