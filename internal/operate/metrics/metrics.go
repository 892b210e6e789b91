// Package metrics is a Prometheus collector. It reports the waiting and running
// work of all nodes, which it reads from the database, and this node's use of
// database connections and memory.
//
//	scrape ─▶ Collect ─▶ sample younger than freshFor? ──yes──▶ reported
//	                        │ no
//	                        ▼
//	                     one read transaction, at most sampleTime ──▶ reported
//	                        │ the database fails or hangs
//	                        ▼
//	                     database_up 0, and no metrics of the database
//
// Scrapes do not accumulate if the database hangs: only one sample is taken at
// a time, and concurrent scrapes wait for it at most scrapeTime. The values
// from the database are the same on every node. Each query reads a limited
// number of rows.
package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/base/memory"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/pool"
	"atelier/internal/run/run"
)

const (
	// freshFor is how long a sample is reused before a new one is taken.
	freshFor = 5 * time.Second
	// sampleTime is the time limit for taking a sample. scrapeTime is how long
	// a scrape waits for a sample. Scrapes need their own limit, because the
	// database driver may not return if a connection hangs.
	sampleTime = 2 * time.Second
	scrapeTime = sampleTime + 500*time.Millisecond
)

// Options are the components that the collector reports on.
type Options struct {
	DB     *sqldb.DB
	Memory *memory.Budget
	// Engines are the names of this node's engines. They are reported even if
	// no run waits for them.
	Engines []string
	// Pools are the pools that this node serves. They are reported even before
	// the node has declared its engines in the database.
	Pools []string
	Log   *slog.Logger
	Now   func() time.Time
}

// Collector implements prometheus.Collector.
type Collector struct {
	Options

	mu     sync.Mutex
	last   sample
	taking chan struct{} // closed when the current sample is complete; nil if no sample is being taken
}

// sample has the values that were read from the database.
type sample struct {
	taken  time.Time // local time at which the sample was started; zero if none was taken yet
	ok     bool
	at     time.Time // database time at which the sample was started
	queues []run.Queue
	pools  []pool.Load
	hooks  webhook.Backlog
	mail   int64
}

// New returns a collector for the components in o.
func New(o Options) *Collector { return &Collector{Options: o} }

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("atelier_"+name, help, labels, nil)
}

// The metrics of all nodes together, which are read from the database.
var (
	databaseUp  = newDesc("database_up", "1 when the database answered the last scrape in time, 0 when it did not.")
	runsWaiting = newDesc("runs_waiting", "Runs that wait for an engine, on all nodes together.", "engine")
	runsOldest  = newDesc("runs_oldest_waiting_seconds", "Age of the run that has waited longest for an engine, on all nodes together; 0 if no run waits.", "engine")
	runsActive  = newDesc("runs_active", "Running runs, on all nodes together, by engine.", "engine")
	poolWorkers = newDesc("pool_workers", "Live nodes that serve an engine of a pool.", "pool")
	poolPlaces  = newDesc("pool_capacity", "Runs of a pool that all live nodes together may execute at the same time.", "pool")
	poolRunning = newDesc("pool_running", "Running runs of a pool, on all nodes together.", "pool")
	poolWaiting = newDesc("pool_waiting", "Runs that wait for an engine of a pool, on all nodes together.", "pool")
	poolOldest  = newDesc("pool_oldest_waiting_seconds", "Age of the run of a pool that has waited longest; 0 if no run waits.", "pool")
	poolWait    = newDesc("pool_estimated_wait_seconds", "Time that a new run of a pool is expected to wait; missing if it is unknown.", "pool")
	hookWaiting = newDesc("webhook_events_waiting", "Events that wait for their next attempt, on all nodes together.")
	hookOverdue = newDesc("webhook_overdue_seconds", "Time since the most overdue event became due, on all nodes together.")
	hookPaused  = newDesc("webhook_hosts_paused", "Receivers whose circuit breaker is open after many failures, on all nodes together.")
	mailWaiting = newDesc("mail_waiting", "Messages that wait to be sent, on all nodes together.")
)

// The metrics of this node.
var (
	dbConnections = newDesc("database_connections", "Connections of this node to the database, by state.", "state")
	dbMax         = newDesc("database_connections_max", "Connections that this node may have to the database.")
	dbWaits       = newDesc("database_waits_total", "Times that this node had to wait for a connection, or on SQLite for its turn to write.")
	dbWaited      = newDesc("database_wait_seconds_total", "Time that this node waited for a connection, or on SQLite for its turn to write.")
	dbReplica     = newDesc("database_replica_usable", "1 while this node reads from the replica, 0 while the replica is away, too far behind, or there is none.")
	dbStaleReads  = newDesc("database_stale_reads_total", "Reads of this node that may be some seconds old, by the server that answered: replica, or primary if the replica could not.", "server")
	memoryBudget  = newDesc("memory_budget_bytes", "Memory that pictures may use on this node.")
	memoryUsed    = newDesc("memory_used_bytes", "Memory that pictures use on this node.")
	memoryWaiting = newDesc("memory_waiting", "Requests that wait for memory on this node, by lane.", "lane")
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		databaseUp, runsWaiting, runsOldest, runsActive, poolWorkers, poolPlaces, poolRunning, poolWaiting, poolOldest, poolWait, hookWaiting, hookOverdue, hookPaused, mailWaiting,
		dbConnections, dbMax, dbWaits, dbWaited, dbReplica, dbStaleReads, memoryBudget, memoryUsed, memoryWaiting,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}

	db := c.DB.Stats()
	gauge(dbConnections, float64(db.Busy), "busy")
	gauge(dbConnections, float64(db.Idle), "idle")
	gauge(dbMax, float64(db.Max))
	counter(dbWaits, float64(db.Waits))
	counter(dbWaited, db.Waited.Seconds())

	replica := db.Replica
	usable := 0.0
	if replica.Usable {
		usable = 1
	}
	gauge(dbReplica, usable)
	counter(dbStaleReads, float64(replica.Reads), "replica")
	counter(dbStaleReads, float64(replica.Fallbacks), "primary")

	budget := c.Memory.Stats()
	gauge(memoryBudget, float64(budget.Total))
	gauge(memoryUsed, float64(budget.Used))
	for lane, n := range budget.Waiting {
		gauge(memoryWaiting, float64(n), lane)
	}

	s := c.currentSample()
	if !s.ok {
		gauge(databaseUp, 0)
		return
	}
	gauge(databaseUp, 1)
	for _, q := range c.withOwn(s.queues) {
		gauge(runsWaiting, float64(q.Waiting), q.Engine)
		gauge(runsOldest, ageOf(s.at, q.Oldest), q.Engine)
		gauge(runsActive, float64(q.Active), q.Engine)
	}
	for _, p := range c.withOwnPools(s.pools) {
		gauge(poolWorkers, float64(p.Workers), p.Name)
		gauge(poolPlaces, float64(p.Capacity), p.Name)
		gauge(poolRunning, float64(p.Running), p.Name)
		gauge(poolWaiting, float64(p.Waiting), p.Name)
		gauge(poolOldest, ageOf(s.at, p.Oldest), p.Name)
		if p.EstimatedWait != nil {
			gauge(poolWait, p.EstimatedWait.Seconds(), p.Name)
		}
	}
	gauge(hookWaiting, float64(s.hooks.Waiting))
	gauge(hookOverdue, ageOf(s.at, s.hooks.Due))
	gauge(hookPaused, float64(s.hooks.Paused))
	gauge(mailWaiting, float64(s.mail))
}

// ageOf returns the number of seconds from then to now. It returns 0 if then is
// zero.
func ageOf(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(now.Sub(then).Seconds(), 0)
}

// withOwn returns queues, and adds an empty queue for each engine of this node
// that is missing in queues.
func (c *Collector) withOwn(queues []run.Queue) []run.Queue {
	seen := map[string]bool{}
	for _, q := range queues {
		seen[q.Engine] = true
	}
	all := append([]run.Queue(nil), queues...)
	for _, name := range c.Engines {
		if !seen[name] {
			all = append(all, run.Queue{Engine: name})
		}
	}
	return all
}

// currentSample returns a sample that is at most freshFor old. Its field ok is
// false if the database does not respond.
func (c *Collector) currentSample() sample {
	c.mu.Lock()
	if !c.last.taken.IsZero() && c.Now().Sub(c.last.taken) < freshFor {
		defer c.mu.Unlock()
		return c.last
	}
	if c.taking == nil {
		c.taking = make(chan struct{})
		go c.takeSample()
	}
	taking := c.taking
	c.mu.Unlock()

	select {
	case <-taking:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.last
	case <-time.After(scrapeTime):
		return sample{}
	}
}

// takeSample reads the values from the database and stores them in c.last.
func (c *Collector) takeSample() {
	s := sample{taken: c.Now()}
	ctx, cancel := context.WithTimeout(context.Background(), sampleTime)
	defer cancel()
	err := c.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		s.at = tx.Now
		if s.queues, err = run.Queues(ctx, tx); err != nil {
			return err
		}
		if s.pools, err = pool.ReadLoads(ctx, tx, s.queues); err != nil {
			return err
		}
		if s.hooks, err = webhook.ReadBacklog(ctx, tx); err != nil {
			return err
		}
		s.mail, err = queue.CountWaiting(ctx, tx, mailqueue.Kind)
		return err
	})
	s.ok = err == nil
	if err != nil {
		c.Log.Debug("database metrics unavailable", "error", err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = s
	close(c.taking)
	c.taking = nil
}
