package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"atelier/internal/base/sqldb"
)

// Job is a background job to add to the queue.
type Job struct {
	Kind string
	// Args is JSON or empty. The handler receives it byte for byte.
	Args []byte
	// Unique, if set, identifies the job among those of its kind. While a job
	// with this key waits or runs, adding another has no effect, even if the
	// existing job is about to finish. So if the job processes a list, it may
	// miss an item that was added together with the second job.
	Unique string
}

// Work is one attempt to run a job.
type Work struct {
	ID   string
	Kind string
	Args []byte
	// Attempt is the number of this attempt, from 1. Attempts that a shutdown
	// interrupted are not counted.
	Attempt int
}

// Handler runs the jobs of one kind.
type Handler struct {
	// Kind is the name of the kind: 2 to 64 lower-case letters and digits, with
	// single underscores or dashes between them.
	Kind string
	// Do runs the job. It returns nil if the job is done, GiveUp if another
	// attempt would be useless, and any other error to request another attempt
	// after the wait in Retry.
	Do func(ctx context.Context, w Work) error
	// Retry has the waits after the first failed attempt, the second and so on.
	// A job has len(Retry)+1 attempts. The value in the process that runs the
	// job applies, not that in the process that added it.
	Retry []time.Duration
	// Timeout is the time limit of one attempt. It is required.
	Timeout time.Duration
	// Every, if set, is the interval at which the queue adds a job of this
	// kind. The first is added soon after Run begins. At each interval only one
	// process adds a job, and none does while the previous job still waits or
	// runs.
	Every time.Duration
	// Parallel is the number of jobs of this kind that this process runs at the
	// same time. The default is 1.
	Parallel int
}

// Queue stores and runs jobs. It is safe for concurrent use.
type Queue interface {
	// Add adds a job, which exists once tx commits, and then wakes a worker.
	// Run need not have been called, and this process needs no handler for the
	// job's kind. If a job with the same Unique key exists, Add returns its id
	// instead.
	Add(ctx context.Context, tx *sqldb.Tx, j Job) (id string, err error)

	// AddAll adds several jobs, like Add. On PostgreSQL it needs one statement
	// for all of them.
	AddAll(ctx context.Context, tx *sqldb.Tx, jobs []Job) error

	// Run runs the jobs of the handlers' kinds until ctx ends. Then it starts
	// no more jobs and waits up to Options.Drain for the running jobs. It
	// cancels the contexts of jobs that run longer and puts these jobs back
	// into the queue, where the next worker can start them immediately. Run
	// returns when all attempts have ended. It can then be called again.
	Run(ctx context.Context, handlers []Handler) error

	// Ping returns an error if the queue's table cannot be read.
	Ping(ctx context.Context) error
}

// Options are the parameters of Open. The default of each duration is given in
// its comment.
type Options struct {
	Log *slog.Logger
	// Now is the clock for the retry times of River. It is required.
	Now func() time.Time
	// Drain is the time that running jobs have to finish when Run ends. The
	// default is 20 s.
	Drain time.Duration
	// Poll is the interval at which the queue checks for due jobs if nothing
	// wakes it. The default is 1 s.
	Poll time.Duration
	// Keep is the time for which finished jobs stay in the table. The default
	// is 24 h.
	Keep time.Duration
	// Lease is the time after which a job on SQLite is taken from a worker that
	// no longer renews its lease. The default is 30 s. Workers renew a lease
	// three times within this time.
	Lease time.Duration
}

// everyKey is the Unique key of periodic jobs.
const everyKey = "every"

// kindName matches names that River accepts both as the kind of a job and as
// the name of a queue.
var kindName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

// errRunning is the error of Run if a previous call has not returned.
var errRunning = errors.New("run queue: already running")

// Open returns the queue for db: River on PostgreSQL, the dispatcher of this
// package on SQLite. A process that only adds jobs does not call Run.
func Open(db *sqldb.DB, o Options) (Queue, error) {
	if o.Now == nil {
		return nil, errors.New("open queue: a clock is required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Drain = cmp.Or(o.Drain, 20*time.Second)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Keep = cmp.Or(o.Keep, 24*time.Hour)
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	if min(o.Drain, o.Poll, o.Keep, o.Lease) < 0 {
		return nil, errors.New("open queue: an option is negative")
	}
	if db.Pool() == nil {
		return newLocal(db, o), nil
	}
	q, err := newSpread(db, o)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

// prepareHandlers validates the handlers and fills in defaults.
func prepareHandlers(handlers []Handler) ([]*Handler, error) {
	if len(handlers) == 0 {
		return nil, errors.New("run queue: no handlers")
	}
	var hs []*Handler
	for _, h := range handlers {
		switch {
		case !kindName.MatchString(h.Kind) || len(h.Kind) < 2 || len(h.Kind) > 64:
			return nil, fmt.Errorf("run queue: %q is not a valid kind of job", h.Kind)
		case slices.ContainsFunc(hs, func(other *Handler) bool { return other.Kind == h.Kind }):
			return nil, fmt.Errorf("run queue: two handlers have the kind %q", h.Kind)
		case h.Do == nil:
			return nil, fmt.Errorf("run queue: the handler for %q has no function", h.Kind)
		case h.Timeout <= 0:
			return nil, fmt.Errorf("run queue: the handler for %q has no timeout", h.Kind)
		case h.Every < 0 || h.Parallel < 0 || len(h.Retry) > 0 && slices.Min(h.Retry) < 0:
			return nil, fmt.Errorf("run queue: the interval, concurrency and retry times of the handler for %q must not be negative", h.Kind)
		}
		h.Parallel = max(h.Parallel, 1)
		hs = append(hs, &h)
	}
	return hs, nil
}

// validate returns an error if River or the table on SQLite could not store the
// job.
func (j Job) validate() error {
	switch {
	case !kindName.MatchString(j.Kind) || len(j.Kind) < 2 || len(j.Kind) > 64:
		return fmt.Errorf("add job: %q is not a valid kind", j.Kind)
	case len(j.Args) > 0 && (!json.Valid(j.Args) || !utf8.Valid(j.Args)):
		return fmt.Errorf("add %s job: the arguments are not JSON", j.Kind)
	case strings.ContainsRune(j.Unique, 0) || !utf8.ValidString(j.Unique):
		return fmt.Errorf("add %s job: the unique key is not valid UTF-8 text", j.Kind)
	}
	return nil
}
