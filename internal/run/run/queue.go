package run

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// Queue is what an engine has to do, on all nodes together.
type Queue struct {
	Engine  string
	Waiting int64     // runs; see countedPeople
	Oldest  time.Time // when the run was created that waits longest, zero where none does; see oldestPeople
	Active  int64     // runs that are worked on
}

// Bounds of what Queues looks at, so that a long queue does not make looking at
// it slow. Beyond them the figures are lower than what they stand for.
const (
	queueEngines  = 100
	countedPeople = 20_000 // of one engine, whose waiting runs are counted
	oldestPeople  = 1_000  // of one engine, served longest ago, whose oldest run counts
	countedActive = 20_000 // runs
)

// Queues gives the queues of all engines that something waits for or works.
func Queues(ctx context.Context, tx *sqldb.Tx) ([]Queue, error) {
	all := map[string]Queue{}
	waiting, err := waitingEngines(ctx, tx)
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
	active, err := countActive(ctx, tx)
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
