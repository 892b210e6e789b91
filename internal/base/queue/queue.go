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

// Job asks for work.
type Job struct {
	Kind string
	// Args is JSON or empty. The handler gets the same bytes.
	Args []byte
	// Unique is a key among the jobs of this kind. While a job with the key
	// waits or runs, adding another changes nothing. That includes a job about
	// to finish: whoever adds work to a list that a job goes through must not
	// count on the one that runs already having seen it.
	Unique string
	// RunAt is the earliest time to run. Zero is at once. River looks for jobs
	// whose time has come every five seconds.
	RunAt time.Time
}

// ReturnAll gives back the jobs that workers have, in a copy of the embedded
// database: the workers are those of the original.
func ReturnAll(ctx context.Context, tx *sqldb.Tx) error { return returnAll(ctx, tx) }

// Work is a job in a handler's hands.
type Work struct {
	ID   string
	Kind string
	Args []byte
	// Attempt is 1 at first and grows with every attempt that counted.
	Attempt int
}

// Handler does the jobs of one kind.
type Handler struct {
	// Kind is two to 64 lower-case letters, digits, and single _ or - between
	// them.
	Kind string
	// Do does the work. It returns nil when the job is done, Snooze or GiveUp
	// for what they say, and any other error to be called again after the wait
	// that Retry has for it.
	Do func(ctx context.Context, w Work) error
	// Retry is how long to wait after the first failure, the second and so on.
	// A job has len(Retry)+1 attempts. The schedule of the process that works
	// counts, not that of the one that added the job.
	Retry []time.Duration
	// Timeout bounds one attempt and is required.
	Timeout time.Duration
	// Every, when set, has the queue add a job of this kind by itself about
	// this often, the first soon after Run. All processes together add one; it
	// is left out while the one before still waits or runs.
	Every time.Duration
	// Parallel is how many jobs of this kind this process does at once;
	// 1 unless set.
	Parallel int
}

// Queue holds jobs and does them. It is safe for concurrent use.
type Queue interface {
	// Add puts a job into the queue when tx commits, and wakes a worker then.
	// It works without Run, and for kinds that have no handler here. When
	// Unique keeps the job out, the id is that of the job there is.
	Add(ctx context.Context, tx *sqldb.Tx, j Job) (id string, err error)

	// Cancel keeps a waiting job from ever running, and ends the context of a
	// running one, which is then not tried again. A handler that returns nil
	// all the same has done the job. A job that is finished or unknown is no
	// error.
	Cancel(ctx context.Context, id string) error

	// Run does jobs until ctx ends. Then it takes no more, gives the running
	// ones Options.Drain to finish, ends the context of the rest and hands
	// them back, to be run again at once by whoever runs next. It returns
	// when all it started has ended. Run can be called again after that.
	Run(ctx context.Context) error

	// Ping proves that the queue's table can be read.
	Ping(ctx context.Context) error
}

// Options are what Open needs besides the handlers. Zero durations mean the
// value in the comment.
type Options struct {
	Log *slog.Logger
	// Now is the clock from which River's retries are counted; required.
	Now func() time.Time
	// Drain is how long running jobs may go on when Run has to end: 20 s.
	Drain time.Duration
	// Poll is how often to look for jobs that nobody woke us for: 1 s.
	Poll time.Duration
	// Keep is how long finished jobs stay in the table: 24 h.
	Keep time.Duration
	// Lease is how long a job on SQLite is left to a worker that gives no sign
	// of life: 30 s. The worker renews it three times as often.
	Lease time.Duration
}

// everyKey is the unique key of the jobs the queue adds by itself.
const everyKey = "every"

// kindName is what River takes both as a kind and as the name of a queue.
var kindName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

var (
	errRunning    = errors.New("run queue: it runs already")
	errNoHandlers = errors.New("run queue: it has no handlers")
)

// Open makes the queue that belongs to db: River on PostgreSQL, the dispatcher
// of this package on SQLite. A process that only adds jobs needs no handlers
// and does not call Run.
func Open(db *sqldb.DB, handlers []Handler, o Options) (Queue, error) {
	hs, err := prepare(handlers)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	if o.Now == nil {
		return nil, errors.New("open queue: it needs a clock")
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
		return newLocal(db, hs, o), nil
	}
	q, err := newSpread(db, hs, o)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

// prepare checks the handlers and fills in what was left out.
func prepare(handlers []Handler) ([]*Handler, error) {
	var hs []*Handler
	for _, h := range handlers {
		switch {
		case !kindName.MatchString(h.Kind) || len(h.Kind) < 2 || len(h.Kind) > 64:
			return nil, fmt.Errorf("%q cannot be a kind of job", h.Kind)
		case slices.ContainsFunc(hs, func(other *Handler) bool { return other.Kind == h.Kind }):
			return nil, fmt.Errorf("two handlers for %q", h.Kind)
		case h.Do == nil:
			return nil, fmt.Errorf("the handler for %q does nothing", h.Kind)
		case h.Timeout <= 0:
			return nil, fmt.Errorf("the handler for %q has no timeout", h.Kind)
		case h.Every < 0 || h.Parallel < 0 || len(h.Retry) > 0 && slices.Min(h.Retry) < 0:
			return nil, fmt.Errorf("the handler for %q has a negative setting", h.Kind)
		}
		h.Parallel = max(h.Parallel, 1)
		hs = append(hs, &h)
	}
	return hs, nil
}

// check refuses jobs that one of the two queues could not hold.
func (j Job) check() error {
	switch {
	case !kindName.MatchString(j.Kind) || len(j.Kind) < 2 || len(j.Kind) > 64:
		return fmt.Errorf("add job: %q cannot be a kind", j.Kind)
	case len(j.Args) > 0 && (!json.Valid(j.Args) || !utf8.Valid(j.Args)):
		return fmt.Errorf("add %s job: the arguments are not JSON", j.Kind)
	case strings.ContainsRune(j.Unique, 0) || !utf8.ValidString(j.Unique):
		return fmt.Errorf("add %s job: the unique key is not text", j.Kind)
	}
	return nil
}
