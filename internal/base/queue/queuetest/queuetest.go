// Package queuetest has the conformance tests for implementations of
// queue.Queue.
package queuetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// Run tests the queue that queue.Open returns. Each call of fresh must return
// the URL of an empty, migrated database.
func Run(t *testing.T, fresh func(t *testing.T) string) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, address string)
	}{
		{"a job runs once, when its transaction commits", committed},
		{"a commit wakes a worker", woken},
		{"arguments arrive byte for byte", arguments},
		{"what cannot be stored is refused", refused},
		{"failures are retried on schedule", retried},
		{"a worker's schedule counts, not the adder's", addedElsewhere},
		{"giving up ends it", gaveUp},
		{"a panic is a failure", panicked},
		{"a timeout is a failure", timedOut},
		{"a unique job is there once", unique},
		{"a job between attempts is still there", betweenAttempts},
		{"a kind runs as many at once as it may", parallel},
		{"two nodes run each job once", twoNodes},
		{"a job every so often, on one of two nodes", everySoOften},
		{"the first of many comes at once", everySoon},
		{"shutdown lets a job finish", drained},
		{"shutdown hands back a job that takes too long", handedBack},
		{"a queue runs once at a time", runsOnce},
		{"ping tells whether the database is there", pinged},
		{"a killed process's job runs again if it may", crashed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, fresh(t))
		})
	}
}

// timeout is the longest time that these tests wait for anything.
const timeout = 30 * time.Second

// Node is a queue with its own database connections. To the database it looks
// like a separate process.
type Node struct {
	queue.Queue
	DB *sqldb.DB

	handlers []queue.Handler
}

// Run runs the queue with the handlers that were passed to Open.
func (n *Node) Run(ctx context.Context) error { return n.Queue.Run(ctx, n.handlers) }

// Open returns a node that uses the database at the URL address.
func Open(t *testing.T, address string, o queue.Options, handlers ...queue.Handler) *Node {
	t.Helper()
	db := dbtest.Open(t, address)
	o.Now = time.Now
	o.Poll = cmp.Or(o.Poll, 50*time.Millisecond)
	o.Drain = cmp.Or(o.Drain, 2*time.Second)
	q, err := queue.Open(db, o)
	if err != nil {
		t.Fatalf("open queue: %v", err)
	}
	return &Node{q, db, handlers}
}

// Start runs the queue in the background until the test ends or stop is called.
// stop waits until Run has returned.
func (n *Node) Start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Errorf("run queue: %v", err)
		}
	})
	stop = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// Put adds a job in its own transaction and returns the job's id.
func (n *Node) Put(t *testing.T, j queue.Job) (id string) {
	t.Helper()
	id, err := n.put(j)
	if err != nil {
		t.Fatalf("add job: %v", err)
	}
	return id
}

func (n *Node) put(j queue.Job) (id string, err error) {
	ctx := context.Background()
	err = n.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		id, err = n.Add(ctx, tx, j)
		return err
	})
	return id, err
}

// Finished waits until a job has finished, successfully or not.
func (n *Node) Finished(t *testing.T, id string) {
	t.Helper()
	query := `SELECT count(*) FROM job WHERE id = $1 AND state IN ('waiting', 'running')`
	if n.DB.Pool() != nil {
		query = `SELECT count(*) FROM river_job WHERE CAST(id AS TEXT) = $1 AND finalized_at IS NULL`
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		live, err := sqldb.One[int64](t.Context(), n.DB, query, id)
		if err != nil {
			t.Fatal(err)
		}
		if live == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s is not over after %s", id, timeout)
		}
	}
}

// Receive returns the next value from c. It fails the test after timeout; what
// describes the value in the message.
func Receive[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(timeout):
		t.Fatalf("no %s after %s", what, timeout)
	}
	return v
}

// start records one call of a handler and its time.
type start struct {
	queue.Work
	at time.Time
}

// starts records the calls of handlers, in order.
type starts struct {
	mu  sync.Mutex
	all []start
}

func (s *starts) add(w queue.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, start{w, time.Now()})
}

// of returns the recorded calls for one job.
func (s *starts) of(id string) []start {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(w start) bool { return w.ID != id })
}

func (s *starts) wantAttempts(t *testing.T, id string, want ...int) {
	t.Helper()
	var got []int
	for _, w := range s.of(id) {
		got = append(got, w.Attempt)
	}
	if !slices.Equal(got, want) {
		t.Errorf("attempts = %v, want %v", got, want)
	}
}

// wantWaits checks that consecutive calls for a job are at least the given
// times apart.
func (s *starts) wantWaits(t *testing.T, id string, waits ...time.Duration) {
	t.Helper()
	all := s.of(id)
	for i, want := range waits {
		if i+1 >= len(all) {
			t.Fatalf("%d calls, want %d", len(all), len(waits)+1)
		}
		if got := all[i+1].at.Sub(all[i].at); got < want {
			t.Errorf("wait %d = %s, want at least %s", i+1, got, want)
		}
	}
}

var errTest = errors.New("as the test wants it")

const second = time.Second

// handler returns a handler that records its calls in s and then calls do.
func handler(s *starts, kind string, do func(ctx context.Context, w queue.Work) error) queue.Handler {
	return queue.Handler{Kind: kind, Timeout: 2 * timeout, Do: func(ctx context.Context, w queue.Work) error {
		s.add(w)
		return do(ctx, w)
	}}
}

// held blocks until c is closed or ctx ends.
func held(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// telling returns a handler that sends the id of each finished job to a channel.
func telling(s *starts, kind string) (queue.Handler, <-chan string) {
	c := make(chan string, 1000)
	return handler(s, kind, func(_ context.Context, w queue.Work) error {
		c <- w.ID
		return nil
	}), c
}
