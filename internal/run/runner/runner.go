// Package runner executes queued runs with engines.
//
// Every engine has a number of slots, which are called its slot pool. While a
// slot is free, the runner claims the next run, passes the job to the engine,
// stores the results and ends the run. The database decides which worker
// executes a run. The runner renews its leases, and stops a job as soon as it
// reads from the database that the run was taken over by another worker, was
// cancelled or has ended.
//
// Every engine also belongs to a pool, such as gpu. An operator can bind a
// worker to pools; its runner then has only the engines of these pools.
//
//	created here ────────▶ NoticeQueued ──▶ slot pool ──claim──▶ engine ──▶ ingest ──▶ generation.EndRun
//	created elsewhere ─▶ ticket ───────┘       ▲
//	once a second ─────────────────────────────┘
//
// On PostgreSQL, if a node has no free slot for a run that was created on it,
// it notifies the other nodes with a job in the queue, which is called a
// ticket. A lost ticket delays a run by at most a second, because every node
// also queries the queued runs once a second.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"atelier/internal/base/ids"
	"atelier/internal/base/memory"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/run/generation"
	"atelier/internal/run/node"
	"atelier/internal/run/run"
)

// Parts are the dependencies of a Runner.
type Parts struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Intake  *ingest.Pipeline
	Catalog *catalog.Catalog
	Runs    *generation.Service
	Hub     *pubsub.Hub
	Slots   map[string]engine.Slots // slots of each engine of this node, by its name in manifests
	Pools   map[string]string       // pool of each engine that the settings name, even if this node does not serve the pool
	Memory  *memory.Budget          // memory budget of all built-in engines; nil if memory is not limited
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil if metrics are not exported
	Now     func() time.Time
	// Address returns a URL under which the person who started a run can
	// download an input file. It is nil if there are no such URLs.
	Address func(a asset.Asset, personID string) string
	Settings
}

// Settings are the operator's settings for executing runs.
type Settings struct {
	// Lease is how long a worker keeps a run without renewing its lease.
	Lease time.Duration
	// Retry is how long to wait after each temporary failure of an engine. An
	// engine is called at most len(Retry)+1 times for a run.
	Retry []time.Duration
	// Attempts is the number of dead workers at which a run fails.
	Attempts int
	// Probe is the interval between two probes of an engine's server.
	Probe time.Duration
	// MaxWait is how long a run may be queued before it fails.
	MaxWait time.Duration
	// QueueTimeout is how long a claimed run may wait in the queue of its model
	// server before it fails. Default: 1 h.
	QueueTimeout time.Duration
	// Drain is how long jobs may continue after the runner has begun to stop.
	Drain time.Duration
	// OutputBytes is the maximum size of one result, in bytes.
	OutputBytes int64
	// Provenance says whether a statement of origin is embedded in results, and
	// Prompts whether the statement contains the prompt.
	Provenance, Prompts bool
}

// Runner executes queued runs. Its method Run may be called only once.
type Runner struct {
	Parts
	worker    string // unique name of this process
	slotPools map[string]*slotPool
	metrics   *metrics

	mu      sync.Mutex
	current map[*job]bool
	renewed time.Time
	// unstaffed has the pools of the engines that have queued runs and that no
	// worker served when this was last checked, by engine.
	unstaffed map[string]string

	stopping chan struct{} // closed when no more runs are claimed

	served  atomic.Bool   // the engines of this node have been reported in the database
	began   time.Time     // time when Run was called
	unknown chan struct{} // signals that a run was created on this node for an engine that this node does not have
}

// slotPool contains the slots of an engine in this process.
type slotPool struct {
	engine.Slots
	name string
	// wake signals that a run was created on this node. offer signals that
	// another node has a queued run; it is unbuffered, so that the sender waits
	// until a slot is free.
	wake  chan struct{}
	offer chan struct{}
	// outside limits the number of jobs that have released their slot in the
	// slot pool (see poolSlot).
	outside chan struct{}

	free             atomic.Bool // a slot is free
	unavailable      atomic.Bool // the engine's server is unavailable
	failure          atomic.Pointer[node.Failure]
	foundUnavailable chan struct{} // signals that a run found the server unavailable
}

// The causes with which the context of a job is cancelled.
var (
	errCancelled = errors.New("the run was cancelled")
	errLost      = fmt.Errorf("the lease of the run is lost: %w", engine.ErrHandedOver)
	errStopping  = fmt.Errorf("the worker is stopping: %w", engine.ErrHandedOver)
	errTimeout   = errors.New("the tool timed out")
	// errQueueTimeout means that the run waited too long in the queue of its
	// model server.
	errQueueTimeout = errors.New("the wait in the server's queue timed out")
)

const (
	lookEvery = time.Second     // interval between queries for queued and for cancelled runs
	reapEvery = 5 * time.Second // interval between queries for runs whose worker died
)

// New returns a runner with the given dependencies. It does nothing until Run
// is called.
func New(p Parts) *Runner {
	p.Probe = cmp.Or(p.Probe, probeLast)
	p.QueueTimeout = cmp.Or(p.QueueTimeout, time.Hour)
	r := &Runner{
		Parts:     p,
		worker:    ids.New(),
		metrics:   newMetrics(p.Metrics, p.Slots),
		slotPools: map[string]*slotPool{},
		current:   map[*job]bool{},
		stopping:  make(chan struct{}),
		unknown:   make(chan struct{}, 1),
	}
	for name, one := range p.Slots {
		r.slotPools[name] = &slotPool{
			Slots:            one,
			name:             name,
			wake:             make(chan struct{}, 1),
			offer:            make(chan struct{}),
			foundUnavailable: make(chan struct{}, 1),
			outside:          make(chan struct{}, maxOutside),
		}
	}
	return r
}

// NoticeQueued must be called after a run was queued on this node. It reports
// whether this node will probably claim the run soon. If not, other nodes
// should be notified.
func (r *Runner) NoticeQueued(engine string) bool {
	p := r.slotPools[engine]
	if p == nil {
		select {
		case r.unknown <- struct{}{}:
		default: // a signal is already pending
		}
		return false
	}
	if p.unavailable.Load() {
		return false
	}
	select {
	case p.wake <- struct{}{}:
		return p.free.Load()
	default: // a signal is already pending, but the slot pool may claim only one run for it
		return false
	}
}

// OfferSlot waits until this node has a free slot for the engine, and then
// makes the node claim a queued run. It returns after offerTimeout at the
// latest, because every node also queries the queued runs periodically.
func (r *Runner) OfferSlot(ctx context.Context, engine string) {
	p := r.slotPools[engine]
	if p == nil {
		return
	}
	select {
	case p.offer <- struct{}{}:
	case <-time.After(offerTimeout):
	case <-ctx.Done():
	}
}

const offerTimeout = 5 * time.Second

// Run claims and executes runs until ctx ends. After that, jobs may continue
// for Drain, and the remaining runs are put back into the queue.
func (r *Runner) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var jobs sync.WaitGroup
	keep, release := context.WithCancel(work) // leases are renewed until the last job is done
	group, ctx := errgroup.WithContext(ctx)
	r.renewed = r.Now()
	r.began = r.DB.Now()
	group.Go(func() error { r.repeatEvery(ctx, serveEvery, "report engines", r.reportServed); return nil })
	group.Go(func() error { reaper{r}.watchUnserved(ctx); return nil })
	for _, p := range r.slotPools {
		group.Go(func() error { r.feedPool(ctx, work, p, &jobs); return nil })
		if server, ok := p.Engine.(engine.Prober); ok {
			group.Go(func() error { r.watchServer(ctx, p, server); return nil })
		}
	}
	group.Go(func() error { r.repeatEvery(ctx, reapEvery, "requeue lost runs", reaper{r}.reapRuns); return nil })
	group.Go(func() error {
		r.repeatEvery(ctx, abandonEvery, "abandon remote work", reaper{r}.abandonRemoteWork)
		return nil
	})
	var keeping sync.WaitGroup
	keeping.Go(func() { r.repeatEvery(keep, lookEvery, "check for cancelled runs", r.checkCancelled) })
	keeping.Go(func() { r.repeatEvery(keep, max(r.Lease/3, time.Millisecond), "renew leases", r.renewLeases) })
	err := group.Wait()
	close(r.stopping)
	done := make(chan struct{})
	go func() { jobs.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(r.Drain):
		stop(errStopping)
		<-done
	}
	release()
	keeping.Wait()
	return err
}

// repeatEvery calls the function do once per span until ctx ends, and logs its
// errors. task describes the work in the log.
func (r *Runner) repeatEvery(ctx context.Context, span time.Duration, task string, do func(context.Context) error) {
	tick := time.NewTicker(span)
	defer tick.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("periodic task of the runner failed", "task", task, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// feedPool claims runs and starts jobs whenever a slot of a slot pool is free,
// until ctx ends.
func (r *Runner) feedPool(ctx, work context.Context, p *slotPool, jobs *sync.WaitGroup) {
	slots := make(chan struct{}, p.Parallel)
	defer p.free.Store(false)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p.free.Store(true)
		j, ok := r.claimNext(ctx, p)
		for !ok {
			select {
			case <-p.wake:
			case <-p.offer:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			j, ok = r.claimNext(ctx, p)
		}
		p.free.Store(false)
		j.slot = &poolSlot{slots: slots, outside: p.outside}
		jobs.Go(func() {
			defer p.noticeEnd()
			defer j.slot.releaseSlot()
			r.runJob(work, p, j)
		})
	}
}

// noticeEnd must be called after a job has ended. If the runs of the engine are
// limited on all nodes together, the slots of this node may all be waiting for
// the place that the job had.
func (p *slotPool) noticeEnd() {
	if p.Limit == 0 {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default: // a signal is already pending
	}
}

// claimNext claims the next run, if there is one. A claim that has begun is not
// aborted when ctx ends. Otherwise the run could be claimed in the database
// without a job on this node, and would wait until its lease expires.
func (r *Runner) claimNext(ctx context.Context, p *slotPool) (*job, bool) {
	if ctx.Err() != nil || p.unavailable.Load() {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Lease)
	defer cancel()
	var j *job
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		j = nil
		one, inputs, ok, err := run.Claim(ctx, tx, run.ClaimOptions{Engine: p.name, Worker: r.worker, Lease: r.Lease, Limit: p.Limit})
		if ok {
			j = &job{run: one, inputs: inputs, clock: newWorkClock(r.Now)}
		}
		return err
	})
	if err != nil {
		r.Log.Warn("could not claim a run", "engine", p.name, "error", err)
		return nil, false
	}
	return j, j != nil
}
