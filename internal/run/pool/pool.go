// Package pool computes the load of pools of engines: the waiting and running
// runs, the places for runs on all live workers, and how long a new run would
// wait. Autoscalers and operators use these figures.
//
// A pool is a name that the settings of an operator give to engines, such as
// gpu. Workers can be bound to pools, so that a pool can be served by machines
// of its own.
package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/run/node"
	"atelier/internal/run/run"
)

// Load is the load of a pool, on all nodes together.
type Load struct {
	Name     string
	Workers  int64     // live nodes that serve an engine of the pool
	Capacity int64     // sum of its engines
	Running  int64     // sum of its engines
	Waiting  int64     // sum of its engines
	Oldest   time.Time // creation time of the run that has waited longest; zero if none waits
	// EstimatedWait is the longest of its engines. It is nil if it is unknown
	// for an engine.
	EstimatedWait *time.Duration
	Engines       []EngineLoad // ordered by name
}

// EngineLoad is the load of an engine, on all nodes together.
type EngineLoad struct {
	Name     string
	Workers  int64 // live nodes that serve the engine
	Capacity int64 // runs that live nodes which can reach the engine's server may execute at the same time
	Running  int64
	Waiting  int64
	Oldest   time.Time // creation time of the run that has waited longest; zero if none waits
	// EstimatedWait is how long a run that is created now is expected to wait.
	// It is nil if runs would wait and it is unknown how long, because no
	// worker can execute them or no run of the tools has been timed.
	EstimatedWait *time.Duration
}

// declaredFor is how long an engine that no live node has and no run waits for
// belongs to its pool after a node last declared it.
const declaredFor = 24 * time.Hour

// ReadLoads returns the load of all pools, ordered by name. queues is the result
// of run.Queues in the same transaction. Engines whose pool no node has declared
// are left out; only nodes of older releases have such engines.
func ReadLoads(ctx context.Context, tx *sqldb.Tx, queues []run.Queue) ([]Load, error) {
	declared, err := run.DeclaredEngines(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("list declared engines: %w", err)
	}
	nodes, err := node.List(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes = slices.DeleteFunc(nodes, func(n node.Node) bool { return !n.IsLive(tx.Now) })

	byEngine := map[string]run.Queue{}
	for _, q := range queues {
		byEngine[q.Engine] = q
	}
	pools := map[string]*Load{}
	for _, d := range declared {
		q := byEngine[d.Engine]
		e := EngineLoad{
			Name:    d.Engine,
			Running: q.Active,
			Waiting: q.Waiting,
			Oldest:  q.Oldest,
		}
		e.Workers, e.Capacity = countPlaces(nodes, d.Engine)
		if e.Workers == 0 && e.Waiting == 0 && e.Running == 0 && tx.Now.Sub(d.Seen) > declaredFor {
			continue
		}
		mean := time.Duration(0)
		if e.Waiting+e.Running > 0 {
			if mean, err = run.MeanEstimate(ctx, tx, d.Engine); err != nil {
				return nil, fmt.Errorf("read estimated durations: %w", err)
			}
		}
		e.EstimatedWait = estimateWait(e, mean)

		if pools[d.Pool] == nil {
			pools[d.Pool] = &Load{Name: d.Pool}
		}
		pools[d.Pool].Engines = append(pools[d.Pool].Engines, e)
	}

	loads := make([]Load, 0, len(pools))
	for _, l := range pools {
		l.sumEngines()
		l.Workers = countWorkers(nodes, *l)
		loads = append(loads, *l)
	}
	slices.SortFunc(loads, func(a, b Load) int { return cmp.Compare(a.Name, b.Name) })
	return loads, nil
}

// countPlaces returns the number of nodes that have an engine, and the number of
// runs that those of them which can reach its server may execute at the same
// time.
func countPlaces(nodes []node.Node, engine string) (workers, places int64) {
	limit := int64(0)
	for _, n := range nodes {
		for _, e := range n.Engines {
			if e.Name != engine {
				continue
			}
			workers++
			limit = max(limit, e.Limit)
			if e.Available {
				places += e.Capacity
			}
		}
	}
	if limit > 0 {
		places = min(places, limit)
	}
	return workers, places
}

// countWorkers returns the number of nodes that have an engine of a pool.
func countWorkers(nodes []node.Node, l Load) (n int64) {
	for _, one := range nodes {
		has := func(e EngineLoad) bool {
			return slices.ContainsFunc(one.Engines, func(own node.Engine) bool { return own.Name == e.Name })
		}
		if slices.ContainsFunc(l.Engines, has) {
			n++
		}
	}
	return n
}

// estimateWait returns how long a new run of an engine is expected to wait, if
// runs take the mean duration and each running run is half done. mean is 0 if no
// duration is known.
func estimateWait(e EngineLoad, mean time.Duration) *time.Duration {
	wait := time.Duration(0)
	if e.Capacity > 0 && e.Waiting+e.Running < e.Capacity {
		return &wait
	}
	if e.Capacity == 0 && e.Waiting == 0 {
		return &wait // a worker that starts now is free
	}
	if e.Capacity == 0 || mean == 0 {
		return nil
	}
	ahead := float64(e.Waiting) + float64(e.Running)/2
	wait = time.Duration(ahead / float64(e.Capacity) * float64(mean))
	return &wait
}

// sumEngines sets the figures of the pool that follow from its engines, except
// Workers.
func (l *Load) sumEngines() {
	wait := time.Duration(0)
	l.EstimatedWait = &wait
	for _, e := range l.Engines {
		l.Capacity += e.Capacity
		l.Running += e.Running
		l.Waiting += e.Waiting
		if !e.Oldest.IsZero() && (l.Oldest.IsZero() || e.Oldest.Before(l.Oldest)) {
			l.Oldest = e.Oldest
		}
		if e.EstimatedWait == nil {
			l.EstimatedWait = nil
		} else if l.EstimatedWait != nil {
			wait = max(wait, *e.EstimatedWait)
		}
	}
}
