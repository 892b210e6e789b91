package metrics

import (
	"cmp"
	"slices"
	"time"

	"atelier/internal/run/pool"
)

// poolsDocument is the JSON document at /pools, for autoscalers.
type poolsDocument struct {
	Created time.Time      `json:"created"` // time at which the figures were read
	Pools   []poolDocument `json:"pools"`   // ordered by name
}

// poolDocument is a pool in the document at /pools.
type poolDocument struct {
	Name string `json:"name"`
	loadDocument
	Engines []engineDocument `json:"engines"` // ordered by name
}

// engineDocument is an engine of a pool in the document at /pools.
type engineDocument struct {
	Name string `json:"name"`
	loadDocument
}

// loadDocument has the figures of a pool or an engine, on all nodes together.
type loadDocument struct {
	Workers              int64    `json:"workers"`
	Capacity             int64    `json:"capacity"`
	Running              int64    `json:"running"`
	Waiting              int64    `json:"waiting"`
	OldestWaitSeconds    float64  `json:"oldest_wait_seconds"`
	EstimatedWaitSeconds *float64 `json:"estimated_wait_seconds"` // null if it is unknown
}

// PoolsDocument returns the JSON document at /pools: the load of all pools, at
// most freshFor old. ok is false if the database does not respond.
func (c *Collector) PoolsDocument() (document any, ok bool) {
	s := c.currentSample()
	if !s.ok {
		return nil, false
	}

	all := poolsDocument{Created: s.at.UTC(), Pools: []poolDocument{}}
	for _, p := range c.withOwnPools(s.pools) {
		one := poolDocument{
			Name:    p.Name,
			Engines: []engineDocument{},
			loadDocument: loadDocument{
				Workers:              p.Workers,
				Capacity:             p.Capacity,
				Running:              p.Running,
				Waiting:              p.Waiting,
				OldestWaitSeconds:    ageOf(s.at, p.Oldest),
				EstimatedWaitSeconds: seconds(p.EstimatedWait),
			},
		}
		for _, e := range p.Engines {
			one.Engines = append(one.Engines, describeEngine(s.at, e))
		}
		all.Pools = append(all.Pools, one)
	}
	return all, true
}

// withOwnPools returns loads, and adds an empty pool for each pool of this node
// that is missing in loads, ordered by name.
func (c *Collector) withOwnPools(loads []pool.Load) []pool.Load {
	all := slices.Clone(loads)
	for _, name := range c.Pools {
		if !slices.ContainsFunc(loads, func(l pool.Load) bool { return l.Name == name }) {
			all = append(all, pool.Load{Name: name, EstimatedWait: new(time.Duration)})
		}
	}
	slices.SortFunc(all, func(a, b pool.Load) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func describeEngine(at time.Time, e pool.EngineLoad) engineDocument {
	return engineDocument{
		Name: e.Name,
		loadDocument: loadDocument{
			Workers:              e.Workers,
			Capacity:             e.Capacity,
			Running:              e.Running,
			Waiting:              e.Waiting,
			OldestWaitSeconds:    ageOf(at, e.Oldest),
			EstimatedWaitSeconds: seconds(e.EstimatedWait),
		},
	}
}

// seconds returns a duration in seconds, or nil if d is nil.
func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	n := d.Seconds()
	return &n
}
