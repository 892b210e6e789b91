package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"atelier/internal/base/dispatch"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/file/library"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/policy"
	"atelier/internal/run/runner"
)

const (
	lease      = 10 * time.Second
	activeRuns = 6 // of a person
)

// retries are the waiting times between the attempts to deliver an event.
var retries = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// node is one process of the installation: its own connections to the database,
// its own service, runner and sender.
type node struct {
	w    *world
	db   *sqldb.DB
	runs *generation.Service

	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	calls  sync.WaitGroup // of clients
	closed bool           // no more calls are accepted

	dead    atomic.Bool
	crashIn atomic.Int64 // number of statements until the crash; 0: no crash is planned
	offset  atomic.Int64 // of its clock, in nanoseconds
}

// startNode starts a node that takes part at once.
func (w *world) startNode() *node {
	w.Helper()
	n := &node{w: w, ended: make(chan struct{})}
	now := func() time.Time { return time.Now().Add(time.Duration(n.offset.Load())) }
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel

	var err error
	n.db, err = sqldb.Open(ctx, w.address, sqldb.Options{MaxConns: 4, Now: now, Trace: n.beforeStatement})
	w.OK(err)
	n.db.SetSealKey(sealKey)
	tools := catalog.New(n.db, nil)
	_, err = tools.RefreshSnapshot(ctx)
	w.OK(err)
	guard := webhook.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	hub := pubsub.New()
	events := dispatch.NewLoop()
	var run *runner.Runner
	n.runs = generation.New(generation.Parts{
		DB:      n.db,
		Catalog: tools,
		Policy:  &policy.Checker{Rules: policy.Default()},
		Hub:     hub,
		Budgets: w.Budgets,
		Guard:   guard,
		Links:   library.URLSigner{Key: sealKey, BaseURL: "https://atelier.example", Lifetime: time.Hour, Now: now},
		Settings: generation.Settings{
			InputFiles:      12,
			MetadataBytes:   8192,
			PluginLength:    64,
			ActiveRuns:      activeRuns,
			CreatePerMinute: 10_000,
			CreatePerHour:   100_000,
			NumResults:      64,
			KeyLifetime:     1000 * time.Hour,
			KeyWait:         time.Minute,
			PollMin:         time.Second,
			PollMax:         10 * time.Second,
		},
		Queued: func(engine string) { run.NoticeQueued(engine) },
		Ended:  events.Wake,
	})
	run = runner.New(runner.Parts{
		DB:      n.db,
		Blobs:   w.Blobs,
		Intake:  w.Intake,
		Catalog: tools,
		Runs:    n.runs,
		Hub:     hub,
		Log:     slog.New(slog.DiscardHandler),
		Now:     now,
		Slots:   map[string]engine.Slots{generationtest.Engine: {Engine: w.engine, Parallel: 3}},
		Settings: runner.Settings{
			Lease:       lease,
			Retry:       []time.Duration{time.Second, 5 * time.Second},
			Attempts:    1000, // workers die often here
			MaxWait:     1000 * time.Hour,
			Drain:       5 * time.Second,
			OutputBytes: 1 << 16,
		},
	})
	sender := webhook.New(webhook.Options{
		DB:       n.db,
		Secrets:  w.secrets,
		Guard:    guard,
		Events:   n.runs,
		Loop:     events,
		Now:      now,
		Schedule: retries,
		RootCAs:  w.receiver.roots,
	})

	var parts sync.WaitGroup
	parts.Go(func() { w.report("runner", run.Run(ctx)) })
	parts.Go(func() { w.report("sender", sender.Run(ctx)) })
	go func() {
		defer close(n.ended)
		parts.Wait()
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		n.calls.Wait()
		n.db.Close()
	}()
	w.counts.starts++
	return n
}

// report fails the test if a part of a node ended with an error.
func (w *world) report(part string, err error) {
	if err != nil {
		w.Errorf("the %s ended: %v", part, err)
	}
}

// beforeStatement is called before each statement of a transaction. It ends the
// goroutine if the node has crashed.
func (n *node) beforeStatement(string, []any) {
	n.w.statements.Add(1)
	if n.crashIn.Load() > 0 && n.crashIn.Add(-1) == 0 {
		n.crash()
	}
	if n.dead.Load() {
		runtime.Goexit()
	}
}

// crash ends the node. Nothing that it does afterwards reaches the database.
func (n *node) crash() {
	if n.dead.CompareAndSwap(false, true) {
		n.w.crashes.Add(1)
		n.cancel()
	}
}

// call runs a client's request at the node, in its own goroutine. If the node
// crashes, answered stays false.
func (n *node) call(request func(ctx context.Context) error) (answered bool, err error) {
	n.mu.Lock()
	if n.closed || n.dead.Load() {
		n.mu.Unlock()
		return false, nil
	}
	done := make(chan error, 1)
	n.calls.Go(func() {
		defer close(done)
		done <- request(context.Background())
	})
	n.mu.Unlock()
	err, answered = <-done
	return answered && !n.dead.Load(), err
}

// counts says what happened.
type counts struct {
	statements, crashes, jumps, starts        int64
	creates, runs, polls, cancels, deliveries int64
	checks                                    int64
	simulated                                 time.Duration
}

func (c *counts) add(o counts) {
	c.statements += o.statements
	c.crashes += o.crashes
	c.jumps += o.jumps
	c.starts += o.starts
	c.creates += o.creates
	c.runs += o.runs
	c.polls += o.polls
	c.cancels += o.cancels
	c.deliveries += o.deliveries
	c.checks += o.checks
	c.simulated += o.simulated
}

func (c counts) String() string {
	return fmt.Sprintf("%d steps (SQL statements) in %v of simulated time; %d crashes, %d clock jumps, %d starts of nodes; %d creates, %d polls, %d cancels, %d runs, %d deliveries; %d checks of all invariants; 0 violations",
		c.statements, c.simulated.Round(time.Second), c.crashes, c.jumps, c.starts, c.creates, c.polls, c.cancels, c.runs, c.deliveries, c.checks)
}
