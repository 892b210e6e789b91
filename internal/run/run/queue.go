package run

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Queue is the load of one engine, on all nodes together.
type Queue struct {
	Engine  string
	Waiting int64     // queued runs; see countedPeople
	Oldest  time.Time // creation of the run that has waited longest, zero if none waits; see oldestPeople
	Active  int64     // claimed runs
}

// Bounds of the rows that Queues reads, so that a long queue does not make the
// query slow. Beyond them the figures are too low.
const (
	queueEngines  = 100
	countedPeople = 20_000 // people per engine whose queued runs are counted
	oldestPeople  = 1_000  // people per engine, served longest ago, whose oldest run is compared
	countedActive = 20_000 // runs
)

// Queues returns the queues of all engines that have queued or claimed runs.
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
