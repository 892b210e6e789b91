// Package runner gives queued runs to engines.
//
// Every engine has a pool of places. As long as one is free, the runner claims
// the next run for it, hands the job to the engine, stores what comes out, and
// ends the run. What it knows is only a copy: it renews its leases, and drops
// a run as soon as the database says that it is somebody else's, cancelled, or
// over.
//
//	created here ──▶ Notice ──▶ pool ──claim──▶ engine ──▶ intake ──▶ generation.End
//	created there ─▶ ticket ─┘   ▲
//	once a second ───────────────┘
//
// On PostgreSQL, where a node has no free place for a run that was created on
// it, a ticket in the queue tells the others: there is work for this engine. A
// ticket that is lost costs a second, since every node looks by itself as well.
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

// Parts are what a runner works with.
type Parts struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Intake  *ingest.Intake
	Catalog *catalog.Catalog
	Runs    *generation.Service
	Hub     *pubsub.Hub
	Pools   map[string]engine.Pool // by the name that manifests have
	Memory  *memory.Budget         // of the engines that ship; nil: nobody counts
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: none
	Now     func() time.Time
	// Address makes an address that answers with an input of a run, for the
	// person whose run it is; nil: none.
	Address func(a asset.Asset, personID string) string
	Settings
}

// Settings are what an operator decides about running.
type Settings struct {
	// Lease is how long a run is left to a worker that gives no sign of life.
	Lease time.Duration
	// Retry is how long to wait after each failure that may be over at the next
	// try; a run has len(Retry)+1 tries.
	Retry []time.Duration
	// Attempts is how many workers may die with a run before it is given up.
	Attempts int
	// Probe is how often engines' servers are asked whether they are there.
	Probe time.Duration
	// MaxWait is how long a run may wait for an engine.
	MaxWait time.Duration
	// Drain is how long running jobs may go on when the runner has to stop.
	Drain time.Duration
	// OutputBytes bounds one result.
	OutputBytes int64
	// Provenance writes into results what made them, and Prompts what was asked
	// for, too.
	Provenance, Prompts bool
}

// Runner runs runs. Run may be called once.
type Runner struct {
	Parts
	worker  string // a name of its own for this process
	pools   map[string]*pool
	metrics *metrics

	mu      sync.Mutex
	current map[*job]bool
	renewed time.Time

	stopping chan struct{} // closed when no more runs are claimed

	served  atomic.Bool   // it was said which engines are here
	began   time.Time     // when Run did
	unknown chan struct{} // a run was created here whose engine is not
}

// pool is an engine's places in this process.
type pool struct {
	engine.Pool
	name string
	// wake is for work that was created here, offer for tickets: a ticket waits
	// until somebody is idle.
	wake  chan struct{}
	offer chan struct{}
	// outside is for jobs that have left their place, see seat.
	outside chan struct{}

	free             atomic.Bool   // a place is
	unavailable      atomic.Bool   // the engine's server is
	foundUnavailable chan struct{} // it was just found so
}

// The reasons for which a job's context ends.
var (
	errCancelled = errors.New("cancelled")
	errLost      = fmt.Errorf("the lease is gone: %w", engine.ErrElsewhere)
	errStopping  = fmt.Errorf("the worker stops: %w", engine.ErrElsewhere)
	errTimeout   = errors.New("the tool's time is over")
)

const (
	lookEvery = time.Second     // for work and for cancellations that nobody told us of
	reapEvery = 5 * time.Second // for runs whose worker died
)

// New makes a runner.
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

// Notice hears of a run that was queued on this node. It tells whether this
// node may take it soon: false means that others should be told.
func (r *Runner) Notice(engine string) bool {
	p := r.pools[engine]
	if p == nil {
		select {
		case r.unknown <- struct{}{}:
		default: // it is looked for already
		}
		return false
	}
	if p.unavailable.Load() {
		return false
	}
	select {
	case p.wake <- struct{}{}:
		return p.free.Load()
	default: // it was woken already and has not come to it: it may take that one only
		return false
	}
}

// Offer waits until a place for the engine is free here and looks for work
// then. It gives up after a while: a ticket is only a hint.
func (r *Runner) Offer(ctx context.Context, engine string) {
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

// Run claims and runs until ctx ends, then lets what goes on finish for a
// while and hands back the rest.
func (r *Runner) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var jobs sync.WaitGroup
	keep, release := context.WithCancel(work) // leases are kept until the last job is done
	group, ctx := errgroup.WithContext(ctx)
	r.renewed = r.Now()
	r.began = r.DB.Now()
	group.Go(func() error { r.repeatEvery(ctx, serveEvery, "say which engines are here", r.reportServed); return nil })
	group.Go(func() error { r.watchUnserved(ctx); return nil })
	for _, p := range r.pools {
		group.Go(func() error { r.feedPool(ctx, work, p, &jobs); return nil })
		if server, ok := p.Engine.(engine.Prober); ok {
			group.Go(func() error { r.watchServer(ctx, p, server); return nil })
		}
	}
	group.Go(func() error { r.repeatEvery(ctx, reapEvery, "take over lost runs", r.reapRuns); return nil })
	group.Go(func() error {
		r.repeatEvery(ctx, abandonEvery, "end what nobody waits for", r.abandonRemoteWork)
		return nil
	})
	var keeping sync.WaitGroup
	keeping.Go(func() { r.repeatEvery(keep, lookEvery, "look after runs", r.checkCancelled) })
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

// repeatEvery does something again and again until ctx ends.
func (r *Runner) repeatEvery(ctx context.Context, span time.Duration, what string, do func(context.Context) error) {
	tick := time.NewTicker(span)
	defer tick.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("runner: cannot "+what, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// feedPool keeps a pool's places busy.
func (r *Runner) feedPool(ctx, work context.Context, p *pool, jobs *sync.WaitGroup) {
	places := make(chan struct{}, p.Parallel)
	defer p.free.Store(false)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case places <- struct{}{}:
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
		j.slot = &poolSlot{places: places, outside: p.outside}
		jobs.Go(func() {
			defer j.slot.release()
			r.runJob(work, p, j)
		})
	}
}

// claimNext takes the next run, if there is one. It is not broken off in the
// middle, or the run would wait for the end of a lease that nobody knows of.
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
		r.Log.Warn("runner: cannot claim a run", "engine", p.name, "error", err)
		return nil, false
	}
	return j, j != nil
}

// checkCancelled ends the jobs whose runs were cancelled, here or elsewhere.
func (r *Runner) checkCancelled(ctx context.Context) error {
	jobs := r.currentJobs()
	if len(jobs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Lease)
	defer cancel()
	var held []run.Held
	err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { held, err = run.HeldBy(ctx, tx, r.worker); return err })
	if err == nil {
		stopOver(jobs, held)
	}
	return err
}

// renewLeases keeps the leases. Where that fails for as long as a lease lasts, the
// runs may be somebody else's, and the jobs are dropped.
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
	var held []run.Held
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

// currentJobs are what runs here now. While nothing does, there is no lease to renew.
func (r *Runner) currentJobs() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.current) == 0 {
		r.renewed = r.Now()
	}
	return slices.Collect(maps.Keys(r.current))
}

// stopOver drops the jobs that the database says are over. They must have been
// here before it was asked: of those that came since it says nothing.
func stopOver(jobs []*job, held []run.Held) {
	ours := make(map[string]run.Held, len(held))
	for _, h := range held {
		ours[h.ID] = h
	}
	for _, j := range jobs {
		switch h, ok := ours[j.run.ID]; {
		case !ok || h.Attempt != j.run.Attempt:
			j.stop(errLost)
		case h.Cancel:
			j.stop(errCancelled)
		}
	}
}
