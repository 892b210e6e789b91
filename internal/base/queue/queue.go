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

// Job is work to do later.
type Job struct {
	Kind string
	// Args is JSON or empty. The handler gets the same bytes.
	Args []byte
	// Unique is a key among the jobs of this kind. While a job with the key
	// waits or runs, adding another has no effect. This includes a job about to
	// finish: a running job that processes a list may miss an item that was
	// added to the list together with the second job.
	Unique string
}

// Work is one attempt of a job.
type Work struct {
	ID   string
	Kind string
	Args []byte
	// Attempt is 1 at first and increases with every attempt that counted.
	Attempt int
}

// Handler does the jobs of one kind.
type Handler struct {
	// Kind is two to 64 lower-case letters, digits, and single _ or - between
	// them.
	Kind string
	// Do does the work. It returns nil when the job is done, GiveUp when another
	// attempt would be useless, and any other error for another attempt after
	// the wait in Retry.
	Do func(ctx context.Context, w Work) error
	// Retry has the waits after the first failure, the second and so on. A job
	// has len(Retry)+1 attempts. The schedule of the process that runs the job
	// counts, not that of the process that added it.
	Retry []time.Duration
	// Timeout limits one attempt and is required.
	Timeout time.Duration
	// Every, if set, makes the queue add a job of this kind about this often,
	// the first soon after Run. All processes together add one job; none is
	// added while the previous one still waits or runs.
	Every time.Duration
	// Parallel is the number of jobs of this kind that this process runs at
	// once; 1 unless set.
	Parallel int
}

// Queue stores jobs and runs them. It is safe for concurrent use.
type Queue interface {
	// Add puts a job into the queue when tx commits, and wakes a worker then.
	// It works without Run, and for kinds without a handler here. When Unique
	// prevents the job, the id is that of the existing job.
	Add(ctx context.Context, tx *sqldb.Tx, j Job) (id string, err error)

	// Run runs the jobs of the handlers' kinds until ctx ends. Then it starts no
	// more jobs, waits for the
	// running ones for up to Options.Drain, cancels the context of the rest and
	// returns them to the queue, from which the next worker starts them at once.
	// It returns when all attempts have ended. Run can be called again after
	// that.
	Run(ctx context.Context, handlers []Handler) error

	// Ping checks that the queue's table can be read.
	Ping(ctx context.Context) error
}

// Options are the parameters of Open. Zero durations mean
// the value in the comment.
type Options struct {
	Log *slog.Logger
	// Now is the clock from which River's retries are counted; required.
	Now func() time.Time
	// Drain is the time that running jobs have to finish when Run ends: 20 s.
	Drain time.Duration
	// Poll is the interval between looks for jobs without a wake-up: 1 s.
	Poll time.Duration
	// Keep is the time that finished jobs stay in the table: 24 h.
	Keep time.Duration
	// Lease is the time after which a job on SQLite is taken from a worker that
	// no longer renews it: 30 s. Workers renew it three times as often.
	Lease time.Duration
}

// everyKey is the unique key of periodic jobs.
const everyKey = "every"

// kindName matches names that River accepts both as a kind and as a queue.
var kindName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

var (
	errRunning    = errors.New("run queue: already running")
	errNoHandlers = errors.New("run queue: no handlers")
)

// Open returns the queue that belongs to db: River on PostgreSQL, the dispatcher
// of this package on SQLite. A process that only adds jobs does not call Run.
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
		return nil, errNoHandlers
	}
	var hs []*Handler
	for _, h := range handlers {
		switch {
		case !kindName.MatchString(h.Kind) || len(h.Kind) < 2 || len(h.Kind) > 64:
			return nil, fmt.Errorf("run queue: %q is not a valid kind of job", h.Kind)
		case slices.ContainsFunc(hs, func(other *Handler) bool { return other.Kind == h.Kind }):
			return nil, fmt.Errorf("run queue: two handlers for %q", h.Kind)
		case h.Do == nil:
			return nil, fmt.Errorf("run queue: the handler for %q has no function", h.Kind)
		case h.Timeout <= 0:
			return nil, fmt.Errorf("run queue: the handler for %q has no timeout", h.Kind)
		case h.Every < 0 || h.Parallel < 0 || len(h.Retry) > 0 && slices.Min(h.Retry) < 0:
			return nil, fmt.Errorf("run queue: the handler for %q has a negative setting", h.Kind)
		}
		h.Parallel = max(h.Parallel, 1)
		hs = append(hs, &h)
	}
	return hs, nil
}

// validate rejects jobs that one of the two queues could not store.
func (j Job) validate() error {
	switch {
	case !kindName.MatchString(j.Kind) || len(j.Kind) < 2 || len(j.Kind) > 64:
		return fmt.Errorf("add job: %q is not a valid kind", j.Kind)
	case len(j.Args) > 0 && (!json.Valid(j.Args) || !utf8.Valid(j.Args)):
		return fmt.Errorf("add %s job: the arguments are not JSON", j.Kind)
	case strings.ContainsRune(j.Unique, 0) || !utf8.ValidString(j.Unique):
		return fmt.Errorf("add %s job: the unique key is not text", j.Kind)
	}
	return nil
}
