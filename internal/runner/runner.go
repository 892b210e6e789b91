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
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"atelier/internal/blob"
	"atelier/internal/catalog"
	"atelier/internal/engine"
	"atelier/internal/generation"
	"atelier/internal/ident"
	"atelier/internal/intake"
	"atelier/internal/queue"
	"atelier/internal/run"
	"atelier/internal/sqldb"
)

// Parts are what a runner works with.
type Parts struct {
	DB      *sqldb.DB
	Blobs   blob.Store
	Intake  *intake.Intake
	Catalog *catalog.Catalog
	Runs    *generation.Service
	Hub     *generation.Hub
	Pools   map[string]engine.Pool // by the name that manifests have
	Log     *slog.Logger
	Now     func() time.Time
	Settings
}

// Settings are what an operator decides about running.
type Settings struct {
	// Lease is how long a run is left to a worker that gives no sign of life.
	Lease time.Duration
	// Retry is how long to wait after each failure that may be over at the next
	// try; a run has len(Retry)+1 tries.
	Retry []time.Duration
	// Attempts is how many workers a run may take down before it is given up.
	Attempts int
	// MaxWait is how long a run may wait for an engine.
	MaxWait time.Duration
	// Drain is how long running jobs may go on when the runner has to stop.
	Drain time.Duration
	// OutputBytes bounds one result.
	OutputBytes int64
}

// Runner runs runs. Run may be called once.
type Runner struct {
	Parts
	worker string // a name of its own for this process
	pools  map[string]*pool

	mu      sync.Mutex
	current map[string]*job // by run
	renewed time.Time
}

// pool is an engine's places in this process.
type pool struct {
	engine.Pool
	name string
	// wake is for work that was created here, offer for tickets: a ticket waits
	// until somebody is idle.
	wake  chan struct{}
	offer chan struct{}
}

// The reasons for which a job's context ends.
var (
	errCancelled = errors.New("cancelled")
	errLost      = errors.New("the lease is gone")
	errStopping  = errors.New("the worker stops")
	errTimeout   = errors.New("the tool's time is over")
)

const (
	lookEvery = time.Second     // for work and for cancellations that nobody told us of
	reapEvery = 5 * time.Second // for runs whose worker died
)

// New makes a runner.
func New(p Parts) *Runner {
	r := &Runner{Parts: p, worker: ident.New(), pools: map[string]*pool{}, current: map[string]*job{}}
	for name, one := range p.Pools {
		r.pools[name] = &pool{Pool: one, name: name, wake: make(chan struct{}, 1), offer: make(chan struct{})}
	}
	return r
}

// Notice hears of a run that was queued on this node. It tells whether this
// node may take it soon: false means that others should be told.
func (r *Runner) Notice(engine string) bool {
	p := r.pools[engine]
	if p == nil {
		return false
	}
	select {
	case p.wake <- struct{}{}:
		return true
	default: // it was woken already and has not come to it: it is busy, or about to look
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
	case <-time.After(offerWait):
	case <-ctx.Done():
	}
}

const offerWait = 5 * time.Second

// Run claims and runs until ctx ends, then lets what goes on finish for a
// while and hands back the rest.
func (r *Runner) Run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var jobs sync.WaitGroup
	keep, release := context.WithCancel(work) // leases are kept until the last job is done
	group, ctx := errgroup.WithContext(ctx)
	r.renewed = r.Now()
	for _, p := range r.pools {
		group.Go(func() error { r.feed(ctx, work, p, &jobs); return nil })
	}
	group.Go(func() error { r.every(ctx, reapEvery, "take over lost runs", r.reap); return nil })
	var keeping sync.WaitGroup
	keeping.Go(func() { r.every(keep, lookEvery, "look after runs", r.look) })
	keeping.Go(func() { r.every(keep, max(r.Lease/3, time.Millisecond), "renew leases", r.renew) })
	err := group.Wait()
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

// every does something again and again until ctx ends.
func (r *Runner) every(ctx context.Context, span time.Duration, what string, do func(context.Context) error) {
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

// feed keeps a pool's places busy.
func (r *Runner) feed(ctx, work context.Context, p *pool, jobs *sync.WaitGroup) {
	places := make(chan struct{}, p.Parallel)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		j, ok := r.claim(ctx, p)
		for !ok {
			select {
			case <-p.wake:
			case <-p.offer:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			j, ok = r.claim(ctx, p)
		}
		jobs.Go(func() {
			defer func() { <-places }()
			r.do(work, p, j)
		})
	}
}

// claim takes the next run, if there is one.
func (r *Runner) claim(ctx context.Context, p *pool) (*job, bool) {
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
		if ctx.Err() == nil {
			r.Log.Warn("runner: cannot claim a run", "engine", p.name, "error", err)
		}
		return nil, false
	}
	return j, j != nil
}

// look ends the jobs whose runs were cancelled, here or elsewhere.
func (r *Runner) look(ctx context.Context) error {
	if !r.busy() {
		return nil
	}
	var held []run.Held
	err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { held, err = run.HeldBy(ctx, tx, r.worker); return err })
	if err == nil {
		r.compare(held)
	}
	return err
}

// renew keeps the leases. Where that fails for as long as a lease lasts, the
// runs may be somebody else's, and the jobs are dropped.
func (r *Runner) renew(ctx context.Context) error {
	if !r.busy() {
		return nil
	}
	var held []run.Held
	asked := r.Now()
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) (err error) { held, err = run.Renew(ctx, tx, r.worker, r.Lease); return err })
	r.mu.Lock()
	if err == nil {
		r.renewed = asked
	}
	overdue := r.Now().Sub(r.renewed) > r.Lease
	r.mu.Unlock()
	if err == nil {
		r.compare(held)
	} else if overdue {
		r.compare(nil)
	}
	return err
}

// busy tells whether anything runs here. While nothing does, there is no lease
// to renew.
func (r *Runner) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.current) == 0 {
		r.renewed = r.Now()
		return false
	}
	return true
}

// compare drops the jobs that the database says are over.
func (r *Runner) compare(held []run.Held) {
	ours := make(map[string]run.Held, len(held))
	for _, h := range held {
		ours[h.ID] = h
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, j := range r.current {
		switch h, ok := ours[id]; {
		case !ok || h.Attempt != j.run.Attempt:
			j.stop(errLost)
		case h.Cancel:
			j.stop(errCancelled)
		}
	}
}

// reapBatch is how many lost runs are looked at in one go.
const reapBatch = 100

// reap takes over runs whose worker died, and ends those that nobody takes.
func (r *Runner) reap(ctx context.Context) error {
	var over []run.Run
	requeued := map[string]bool{}
	err := r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		over = nil
		lost, err := run.Expired(ctx, tx, reapBatch)
		if err != nil {
			return err
		}
		for _, one := range lost {
			if one.Attempt >= int64(r.Attempts) || one.Cancel {
				over = append(over, one)
				continue
			}
			if _, err := run.Requeue(ctx, tx, run.Held{ID: one.ID, Attempt: one.Attempt}, run.Lost); err != nil {
				return err
			}
			requeued[one.Engine] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range requeued {
		r.Notice(name)
	}
	for _, one := range over {
		e := generation.Ending{State: run.Failed, ErrorCode: string(engine.Failed), ErrorText: "The tool stopped working again and again."}
		if one.Cancel {
			e = generation.Ending{State: run.Cancelled}
		}
		if err := r.Runs.End(ctx, one, e); err != nil && !errors.Is(err, generation.ErrOver) {
			return err
		}
	}
	return r.giveUp(ctx)
}

// giveUp ends runs that waited too long.
func (r *Runner) giveUp(ctx context.Context) error {
	var waiting []run.Run
	err := r.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		waiting, err = run.WaitingSince(ctx, tx, tx.Now.Add(-r.MaxWait), reapBatch)
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range waiting {
		err := r.Runs.End(ctx, one, generation.Ending{
			State: run.Failed, ErrorCode: string(engine.Unavailable), ErrorText: "Nothing was free to run this tool in time.",
		})
		if err != nil && !errors.Is(err, generation.ErrOver) {
			return err
		}
	}
	return nil
}

// TicketKind is the kind of the jobs that spread work over nodes.
const TicketKind = "run-ticket"

// Tickets handles the tickets of other nodes.
func (r *Runner) Tickets() queue.Handler {
	return queue.Handler{
		Kind: TicketKind, Timeout: time.Minute, Parallel: max(len(r.pools), 1),
		Do: func(ctx context.Context, w queue.Work) error {
			r.Offer(ctx, string(w.Args[1:len(w.Args)-1]))
			return nil
		},
	}
}
