package webhook

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Backlog is what senders have still to do, on all nodes together.
type Backlog struct {
	Waiting int64     // events, up to countedEvents
	Due     time.Time // of the event that is overdue longest, zero where none is
	Paused  int64     // hosts that are left alone after failures, up to countedEvents
}

// countedEvents bounds what Backlog looks at.
const countedEvents = 20_000

// ReadBacklog looks at the outbox.
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
