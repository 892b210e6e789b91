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

// spread is the queue that River keeps in PostgreSQL, for any number of
// processes. Each kind has a River queue of its own name, which is what makes
// Parallel hold.
type spread struct {
	db     *sqldb.DB
	client *river.Client[pgx.Tx]
	tries  map[string]int // attempts by kind
	active atomic.Bool    // Run is going on
}

// rescueGrace is what a handler has for coming home after its Timeout, before
// River takes it for dead.
const rescueGrace = 10 * time.Second

// liveStates are those in which a job keeps its unique key. River insists on
// all but the retryable one.
var liveStates = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
	rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

func newSpread(db *sqldb.DB, handlers []*Handler, o Options) (*spread, error) {
	s := &spread{db: db, tries: map[string]int{}}
	conf := &river.Config{
		Logger:                      slog.New(quiet{o.Log.Handler()}),
		FetchCooldown:               time.Millisecond, // the default starts a job up to 0.9 s late
		FetchPollInterval:           max(o.Poll, time.Millisecond),
		SoftStopTimeout:             o.Drain,
		CompletedJobRetentionPeriod: o.Keep,
		CancelledJobRetentionPeriod: o.Keep,
		DiscardedJobRetentionPeriod: o.Keep,
		SkipUnknownJobCheck:         true,
	}
	if len(handlers) > 0 {
		conf.Workers = river.NewWorkers()
		conf.Queues = map[string]river.QueueConfig{}
	}
	for _, h := range handlers {
		s.tries[h.Kind] = len(h.Retry) + 1
		conf.JobTimeout = max(conf.JobTimeout, h.Timeout)
		conf.Queues[h.Kind] = river.QueueConfig{MaxWorkers: h.Parallel}
		river.AddWorkerArgs(conf.Workers, payload{kind: h.Kind}, &worker{handler: h, log: o.Log, now: o.Now})
		if h.Every > 0 {
			job := Job{Kind: h.Kind, Unique: everyKey}
			conf.PeriodicJobs = append(conf.PeriodicJobs, river.NewPeriodicJob(
				river.PeriodicInterval(h.Every),
				func() (river.JobArgs, *river.InsertOpts) { return s.args(job) },
				&river.PeriodicJobOpts{RunOnStart: true}))
		}
	}
	if conf.JobTimeout > 0 {
		conf.RescueStuckJobsAfter = conf.JobTimeout + rescueGrace
	}
	client, err := river.NewClient(riverpgxv5.New(db.Pool()), conf)
	s.client = client
	return s, err
}

// payload is a job as River stores it. Args is a string and not a part of the
// object, because jsonb gives back other bytes than it was given and refuses
// some JSON.
type payload struct {
	kind string
	Key  string `json:"key,omitempty" river:"unique"`
	Args string `json:"args,omitempty"`
}

func (p payload) Kind() string { return p.kind }

// args makes a job River's.
func (s *spread) args(j Job) (river.JobArgs, *river.InsertOpts) {
	opts := &river.InsertOpts{Queue: j.Kind, MaxAttempts: s.tries[j.Kind], ScheduledAt: j.RunAt}
	if opts.MaxAttempts == 0 {
		opts.MaxAttempts = math.MaxInt16 // no handler here: the worker's counts
	}
	if j.Unique != "" {
		opts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: liveStates}
	}
	return payload{kind: j.Kind, Key: j.Unique, Args: string(j.Args)}, opts
}

func (s *spread) Add(ctx context.Context, tx *sqldb.Tx, j Job) (string, error) {
	if err := j.check(); err != nil {
		return "", err
	}
	if !j.RunAt.After(tx.Now) {
		j.RunAt = time.Time{} // River would let it wait for the scheduler's next round
	}
	args, opts := s.args(j)
	res, err := s.client.InsertTx(ctx, tx.PGX(), args, opts)
	if err != nil {
		return "", fmt.Errorf("add %s job: %w", j.Kind, err)
	}
	return strconv.FormatInt(res.Job.ID, 10), nil
}

func (s *spread) Cancel(ctx context.Context, id string) error {
	n, bad := strconv.ParseInt(id, 10, 64)
	if bad != nil {
		return nil // no job of ours
	}
	if _, err := s.client.JobCancel(ctx, n); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
		return fmt.Errorf("cancel job: %w", err)
	}
	return nil
}

func (s *spread) Ping(ctx context.Context) error { return ping(ctx, s.db) }

func (s *spread) Run(ctx context.Context) error {
	if len(s.tries) == 0 {
		return errNoHandlers
	}
	if !s.active.CompareAndSwap(false, true) {
		return errRunning
	}
	defer s.active.Store(false)
	// The end of ctx is a soft stop, which SoftStopTimeout makes a hard one.
	if err := s.client.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run queue: %w", err)
	}
	<-s.client.Stopped()
	return nil
}

// worker is a handler as River calls it.
type worker struct {
	river.WorkerDefaults[payload]
	handler *Handler
	log     *slog.Logger
	now     func() time.Time
}

func (r *worker) Timeout(*river.Job[payload]) time.Duration { return r.handler.Timeout }

func (r *worker) NextRetry(job *river.Job[payload]) time.Time {
	retry := r.handler.Retry
	if len(retry) == 0 {
		return r.now()
	}
	return r.now().Add(retry[min(job.Attempt, len(retry))-1])
}

func (r *worker) Work(ctx context.Context, job *river.Job[payload]) error {
	w := Work{ID: strconv.FormatInt(job.ID, 10), Kind: r.handler.Kind, Args: []byte(job.Args.Args), Attempt: job.Attempt}
	var err error
	if job.Attempt > len(r.handler.Retry)+1 {
		err = GiveUp(errLost) // rescued after its last attempt
	} else {
		err = r.handler.do(ctx, w)
	}
	o := r.handler.judge(w.Attempt, err, cause(ctx))
	report(ctx, r.log, w, o)
	switch {
	case o.state == done:
		return nil
	case o.free:
		return river.JobSnooze(o.wait)
	case o.state == failed && job.Attempt < job.MaxAttempts:
		return river.JobCancel(errors.New(o.text())) // River would go on
	default:
		return errors.New(o.text())
	}
}

// cause is why River ended the context of an attempt, in our terms.
func cause(ctx context.Context) error {
	switch {
	case errors.Is(context.Cause(ctx), river.ErrJobCancelledRemotely):
		return errCancelled
	case errors.Is(ctx.Err(), context.Canceled):
		return errStopping
	}
	return nil
}

// quiet makes River's news about its own parts debug messages.
type quiet struct{ slog.Handler }

func quieter(l slog.Level) slog.Level {
	if l < slog.LevelWarn {
		return min(l, slog.LevelDebug)
	}
	return l
}

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, quieter(l))
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quieter(r.Level)
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(as []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(as)} }
func (q quiet) WithGroup(name string) slog.Handler    { return quiet{q.Handler.WithGroup(name)} }
