package run

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Queue describes the load of one engine on all nodes together.
type Queue struct {
	Engine  string
	Waiting int64     // number of queued runs, limited by countedPeople
	Oldest  time.Time // creation time of the run that has waited longest, zero if no run waits; limited by oldestPeople
	Active  int64     // number of running runs
}

// Limits on the rows that Queues reads, so that a long queue does not make the
// query slow. If a limit is exceeded, the reported numbers are too low.
const (
	queueEngines  = 100
	countedPeople = 20_000 // people per engine whose queued runs are counted
	oldestPeople  = 1_000  // people per engine whose oldest runs are compared: the people whose turn comes next
	countedActive = 20_000 // running runs that are counted
)

// Queues returns the load of all engines that have queued or running runs.
func Queues(ctx context.Context, tx *sqldb.Tx) ([]Queue, error) {
	all := map[string]Queue{}
	waiting, err := listWaitingEngines(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("list engines: %w", err)
	}

	for _, engine := range waiting {
		q := Queue{Engine: engine}
		if q.Waiting, err = countWaiting(ctx, tx, engine); err != nil {
			return nil, fmt.Errorf("count waiting runs: %w", err)
		}
		if q.Oldest, err = oldestWaiting(ctx, tx, engine); err != nil {
			return nil, fmt.Errorf("find oldest run: %w", err)
		}
		all[engine] = q
	}

	active, err := countActiveByEngine(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("count active runs: %w", err)
	}
	for engine, n := range active {
		q := all[engine]
		q.Engine = engine
		q.Active = n
		all[engine] = q
	}

	queues := make([]Queue, 0, len(all))
	for _, q := range all {
		queues = append(queues, q)
	}
	return queues, nil
}
