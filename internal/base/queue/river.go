package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"atelier/internal/base/sqldb"
)

// spread is the queue on PostgreSQL, which any number of processes can share.
// River stores and runs its jobs. Each kind of job has its own River queue, so
// that its number of concurrent jobs can be limited.
type spread struct {
	db     *sqldb.DB
	o      Options
	client *river.Client[pgx.Tx] // only adds jobs; Run creates another client for its handlers
	active atomic.Bool           // Run has been called and has not returned
}

// rescueGrace is the time that a handler has to return after its Timeout before
// River considers the job stuck and starts it again.
const rescueGrace = 10 * time.Second

// liveStates are the states in which a job prevents adding another job with the
// same Unique key. River requires all of them except retryable.
var liveStates = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
	rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

func newSpread(db *sqldb.DB, o Options) (*spread, error) {
	client, err := river.NewClient(riverpgxv5.New(db.Pool()), riverConfig(o))
	return &spread{db: db, o: o, client: client}, err
}

// riverConfig returns the settings of a client that only adds jobs.
func riverConfig(o Options) *river.Config {
	return &river.Config{
		Logger:                      slog.New(quiet{o.Log.Handler()}),
		FetchCooldown:               time.Millisecond, // with the default, a job may start up to 0.9 s late
		FetchPollInterval:           max(o.Poll, time.Millisecond),
		SoftStopTimeout:             o.Drain,
		CompletedJobRetentionPeriod: o.Keep,
		CancelledJobRetentionPeriod: o.Keep,
		DiscardedJobRetentionPeriod: o.Keep,
		SkipUnknownJobCheck:         true,
	}
}

// newWorkers returns a River client that runs the jobs of the handlers.
func newWorkers(db *sqldb.DB, handlers []*Handler, o Options) (*river.Client[pgx.Tx], error) {
	conf := riverConfig(o)
	conf.Workers = river.NewWorkers()
	conf.Queues = map[string]river.QueueConfig{}
	for _, h := range handlers {
		conf.JobTimeout = max(conf.JobTimeout, h.Timeout)
		conf.Queues[h.Kind] = river.QueueConfig{MaxWorkers: h.Parallel}
		river.AddWorkerArgs(conf.Workers, payload{kind: h.Kind}, &worker{handler: h, log: o.Log, now: o.Now})
		if h.Every > 0 {
			job := Job{Kind: h.Kind, Unique: everyKey}
			conf.PeriodicJobs = append(conf.PeriodicJobs, river.NewPeriodicJob(
				river.PeriodicInterval(h.Every),
				func() (river.JobArgs, *river.InsertOpts) { return riverArgs(job) },
				&river.PeriodicJobOpts{RunOnStart: true}))
		}
	}
	conf.RescueStuckJobsAfter = conf.JobTimeout + rescueGrace
	return river.NewClient(riverpgxv5.New(db.Pool()), conf)
}

// payload is a job in River's representation. Args is a string instead of
// nested JSON, because PostgreSQL's jsonb changes the bytes and rejects some
// valid JSON.
type payload struct {
	kind string
	Key  string `json:"key,omitempty" river:"unique"`
	Args string `json:"args,omitempty"`
}

func (p payload) Kind() string { return p.kind }

// riverArgs converts a job to River's arguments and options. It does not let
// River limit the attempts, because only the handler defines the limit, and the
// process that adds the job possibly does not have the handler. Instead, the
// worker ends the job after the last attempt.
func riverArgs(j Job) (river.JobArgs, *river.InsertOpts) {
	opts := &river.InsertOpts{Queue: j.Kind, MaxAttempts: math.MaxInt16}
	if j.Unique != "" {
		opts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: liveStates}
	}
	return payload{kind: j.Kind, Key: j.Unique, Args: string(j.Args)}, opts
}

func (s *spread) Add(ctx context.Context, tx *sqldb.Tx, j Job) (string, error) {
	if err := j.validate(); err != nil {
		return "", err
	}
	args, opts := riverArgs(j)
	pgtx, err := tx.PGX(ctx)
	if err != nil {
		return "", fmt.Errorf("add %s job: %w", j.Kind, err)
	}
	res, err := s.client.InsertTx(ctx, pgtx, args, opts)
	if err != nil {
		return "", fmt.Errorf("add %s job: %w", j.Kind, err)
	}
	return strconv.FormatInt(res.Job.ID, 10), nil
}

func (s *spread) AddAll(ctx context.Context, tx *sqldb.Tx, jobs []Job) error {
	if len(jobs) == 0 {
		return nil
	}
	all := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		if err := j.validate(); err != nil {
			return err
		}
		all[i].Args, all[i].InsertOpts = riverArgs(j)
	}
	pgtx, err := tx.PGX(ctx)
	if err == nil {
		_, err = s.client.InsertManyTx(ctx, pgtx, all)
	}
	if err != nil {
		return fmt.Errorf("add %d jobs: %w", len(jobs), err)
	}
	return nil
}

func (s *spread) Ping(ctx context.Context) error { return readTable(ctx, s.db) }

func (s *spread) Run(ctx context.Context, handlers []Handler) error {
	prepared, err := prepareHandlers(handlers)
	if err != nil {
		return err
	}
	if !s.active.CompareAndSwap(false, true) {
		return errRunning
	}
	defer s.active.Store(false)
	workers, err := newWorkers(s.db, prepared, s.o)
	if err != nil {
		return fmt.Errorf("run queue: %w", err)
	}

	// When ctx ends, River stops softly: it waits for running jobs up to
	// SoftStopTimeout and then cancels them.
	if err := workers.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run queue: %w", err)
	}
	<-workers.Stopped()
	return nil
}

// worker runs a Handler as a River worker.
type worker struct {
	river.WorkerDefaults[payload]
	handler *Handler
	log     *slog.Logger
	now     func() time.Time
}

func (r *worker) Timeout(*river.Job[payload]) time.Duration { return r.handler.Timeout }

// NextRetry returns when River starts the next attempt. If a worker died in the
// last attempt, River starts one more immediately, in which Work ends the job
// without calling the handler.
func (r *worker) NextRetry(job *river.Job[payload]) time.Time {
	if job.Attempt > len(r.handler.Retry) {
		return r.now()
	}
	return r.now().Add(r.handler.Retry[job.Attempt-1])
}

func (r *worker) Work(ctx context.Context, job *river.Job[payload]) error {
	w := Work{ID: strconv.FormatInt(job.ID, 10), Kind: r.handler.Kind, Args: []byte(job.Args.Args), Attempt: job.Attempt}
	var err error
	if job.Attempt > len(r.handler.Retry)+1 {
		err = GiveUp(errLost) // the worker of the last attempt died
	} else {
		err = r.handler.callOnce(ctx, w)
	}
	o := r.handler.decideOutcome(w.Attempt, err, causeOfEnd(ctx))
	logOutcome(ctx, r.log, w, o)
	switch {
	case o.state == done:
		return nil
	case o.free:
		return river.JobSnooze(o.wait)
	case o.state == failed:
		return river.JobCancel(errors.New(o.errorText())) // cancelled, because River would retry the job after an ordinary error
	default:
		return errors.New(o.errorText())
	}
}

// causeOfEnd returns the reason why River ended the context of an attempt:
// errStopping if it was cancelled, nil otherwise.
func causeOfEnd(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errStopping
	}
	return nil
}

// quiet is a log handler that logs River's messages below the level warn at the
// level debug.
type quiet struct{ slog.Handler }

func lowerLevel(l slog.Level) slog.Level {
	if l < slog.LevelWarn {
		return min(l, slog.LevelDebug)
	}
	return l
}

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, lowerLevel(l))
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowerLevel(r.Level)
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(as []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(as)} }
func (q quiet) WithGroup(name string) slog.Handler    { return quiet{q.Handler.WithGroup(name)} }
