// Package runner passes queued runs to engines.
//
// Every engine has a pool of slots. While a slot is free, the runner claims the
// next run, passes the job to the engine, stores the results and ends the run.
// Its state in memory is only a copy: the runner renews its leases, and drops a
// run as soon as it reads from the database that another worker has the run, or
// that the run is cancelled or has ended.
//
//	created here ────────▶ NoticeQueued ──▶ pool ──claim──▶ engine ──▶ ingest ──▶ generation.EndRun
//	created elsewhere ─▶ ticket ───────┘     ▲
//	once a second ───────────────────────────┘
//
// On PostgreSQL, if a node has no free slot for a run that was created on it, a
// ticket in the queue notifies the other nodes. A lost ticket delays a run by a
// second, because every node also looks for work by itself.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	Pools   map[string]engine.Pool // by the name of the engine in manifests
	Memory  *memory.Budget         // shared by the built-in engines; nil: not counted
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: none
	Now     func() time.Time
	// Address returns a URL that serves an input of a run to the person who
	// started it; nil: none.
	Address func(a asset.Asset, personID string) string
	Settings
}

// Settings are the settings of an operator about running.
type Settings struct {
	// Lease is how long a run stays with a worker that does not renew its
	// lease.
	Lease time.Duration
	// Retry is how long to wait after each failure that may be temporary; a run
	// has len(Retry)+1 tries.
	Retry []time.Duration
	// Attempts is how many workers may die with a run before it fails.
	Attempts int
	// Probe is the interval between two probes of an engine's server.
	Probe time.Duration
	// MaxWait is how long a run may wait for an engine.
	MaxWait time.Duration
	// Drain is how long running jobs may continue when the runner has to stop.
	Drain time.Duration
	// OutputBytes is the maximum size of one result.
	OutputBytes int64
	// Provenance embeds a statement of origin in results; Prompts includes the
	// prompt in it.
	Provenance, Prompts bool
}

// Runner runs queued runs. Run may be called once.
type Runner struct {
	Parts
	worker  string // the unique name of this process
	pools   map[string]*pool
	metrics *metrics

	mu      sync.Mutex
	current map[*job]bool
	renewed time.Time

	stopping chan struct{} // closed when no more runs are claimed

	served  atomic.Bool   // the engines of this node have been reported
	began   time.Time     // when Run was called
	unknown chan struct{} // signals a run that was created here for an engine that this node lacks
}

// pool is the slots of an engine in this process.
type pool struct {
	engine.Pool
	name string
	// wake signals runs that were created here, offer receives tickets: a
	// ticket waits until a slot is free.
	wake  chan struct{}
	offer chan struct{}
	// outside bounds the jobs that have left their slot, see poolSlot.
	outside chan struct{}

	free             atomic.Bool   // a slot is free
	unavailable      atomic.Bool   // the engine's server is unavailable
	foundUnavailable chan struct{} // signals that a run found the server unavailable
}

// The causes for which the context of a job ends.
var (
	errCancelled = errors.New("cancelled")
	errLost      = fmt.Errorf("lease lost: %w", engine.ErrHandedOver)
	errStopping  = fmt.Errorf("worker stopping: %w", engine.ErrHandedOver)
	errTimeout   = errors.New("the tool timed out")
)

const (
	lookEvery = time.Second     // for work and for cancellations without a notification
	reapEvery = 5 * time.Second // for runs whose worker died
)

// New returns a runner.
func New(p Parts) *Runner {
	p.Probe = cmp.Or(p.Probe, probeLast)
	r := &Runner{
		Parts:    p,
		worker:   ids.New(),
		metrics:  newMetrics(p.Metrics, p.Pools),
		pools:    map[string]*pool{},
		current:  map[*job]bool{},
		stopping: make(chan struct{}),
		unknown:  make(chan struct{}, 1),
	}
	for name, one := range p.Pools {
		r.pools[name] = &pool{
			Pool:             one,
			name:             name,
			wake:             make(chan struct{}, 1),
			offer:            make(chan struct{}),
			foundUnavailable: make(chan struct{}, 1),
			outside:          make(chan struct{}, maxOutside),
		}
	}
	return r
}

// NoticeQueued is called for a run that was queued on this node. It reports whether
// this node may claim it soon: false means that other nodes should be notified.
func (r *Runner) NoticeQueued(engine string) bool {
	p := r.pools[engine]
	if p == nil {
		select {
		case r.unknown <- struct{}{}:
		default: // a signal is pending already
		}
		return false
	}
	if p.unavailable.Load() {
		return false
	}
	select {
	case p.wake <- struct{}{}:
		return p.free.Load()
	default: // a signal is pending: the pool may claim that run only
		return false
	}
}

// OfferSlot waits until a slot for the engine is free here, and looks for work
// then. It returns after a while in any case: a ticket is only a hint.
func (r *Runner) OfferSlot(ctx context.Context, engine string) {
	p := r.pools[engine]
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

// Run claims and runs until ctx ends. Then running jobs may continue for Drain,
// and the rest are returned to the queue.
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
	for _, p := range r.pools {
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

// repeatEvery calls do at an interval until ctx ends.
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

// feedPool keeps the slots of a pool busy.
func (r *Runner) feedPool(ctx, work context.Context, p *pool, jobs *sync.WaitGroup) {
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
			defer j.slot.releaseSlot()
			r.runJob(work, p, j)
		})
	}
}

// claimNext claims the next run, if there is one. It ignores the end of ctx in
// the middle: the run would otherwise wait until a lease expires that no worker
// uses.
func (r *Runner) claimNext(ctx context.Context, p *pool) (*job, bool) {
	if ctx.Err() != nil || p.unavailable.Load() {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Lease)
	defer cancel()
	var j *job
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		j = nil
		one, inputs, ok, err := run.Claim(ctx, tx, p.name, r.worker, r.Lease)
		if ok {
			j = &job{run: one, inputs: inputs, claimed: r.Now()}
		}
		return err
	})
	if err != nil {
		r.Log.Warn("could not claim a run", "engine", p.name, "error", err)
		return nil, false
	}
	return j, j != nil
}

// checkCancelled stops the jobs whose runs were cancelled, on any node.
func (r *Runner) checkCancelled(ctx context.Context) error {
	jobs := r.currentJobs()
	if len(jobs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Lease)
	defer cancel()
	var held []run.Lease
	err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { held, err = run.ListLeases(ctx, tx, r.worker); return err })
	if err == nil {
		stopOver(jobs, held)
	}
	return err
}

// renewLeases renews the leases of all jobs. If that fails for as long as a
// lease lasts, other workers may have the runs, and the jobs are stopped.
func (r *Runner) renewLeases(ctx context.Context) error {
	jobs := r.currentJobs()
	if len(jobs) == 0 {
		return nil
	}
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.run.ID
	}
	ctx, cancel := context.WithTimeout(ctx, r.Lease)
	defer cancel()
	var held []run.Lease
	asked := r.Now()
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		held, err = run.RenewLeases(ctx, tx, r.worker, ids, r.Lease)
		return err
	})
	r.mu.Lock()
	if err == nil {
		r.renewed = asked
	}
	overdue := r.Now().Sub(r.renewed) > r.Lease
	r.mu.Unlock()
	if err == nil {
		stopOver(jobs, held)
	} else if overdue {
		stopOver(jobs, nil)
	}
	return err
}

// currentJobs returns the jobs of this process. While there are none, no lease
// needs renewal.
func (r *Runner) currentJobs() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.current) == 0 {
		r.renewed = r.Now()
	}
	return slices.Collect(maps.Keys(r.current))
}

// stopOver stops the jobs whose claim the database no longer has. The jobs must
// have existed before the database was read.
func stopOver(jobs []*job, held []run.Lease) {
	claims := make(map[string]run.Lease, len(held))
	for _, h := range held {
		claims[h.ID] = h
	}
	for _, j := range jobs {
		switch h, ok := claims[j.run.ID]; {
		case !ok || h.Attempt != j.run.Attempt:
			j.stop(errLost)
		case h.Cancel:
			j.stop(errCancelled)
		}
	}
}
