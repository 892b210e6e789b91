package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atelier/internal/base/queue"
	"atelier/internal/base/queue/queuetest"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// Not parallel: goleak sees the goroutines of every test.
func TestLocalLeavesNoGoroutine(t *testing.T) {
	began := make(chan string, 1)
	n := queuetest.Open(t, dbtest.URL(t, "sqlite"), queue.Options{Drain: time.Millisecond}, queue.Handler{
		Kind: "note", Timeout: time.Minute, Every: time.Hour,
		Do: func(ctx context.Context, w queue.Work) error {
			began <- w.ID
			<-ctx.Done()
			return ctx.Err()
		},
	})
	before := goleak.IgnoreCurrent()
	stop := n.Start(t)
	queuetest.Receive(t, began, "job")
	stop()
	goleak.VerifyNone(t, before)
}

func TestLocalLateWorker(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t, "sqlite")
	type call struct {
		attempt int
		finish  chan error
	}
	quit := make(chan struct{})
	defer close(quit)
	node := func(lease, timeout time.Duration) (*queuetest.Node, chan call) {
		calls := make(chan call, 10)
		return queuetest.Open(t, address, queue.Options{Lease: lease}, queue.Handler{
			Kind: "note", Timeout: timeout, Retry: make([]time.Duration, 5),
			Do: func(_ context.Context, w queue.Work) error { // deaf to its context
				c := call{w.Attempt, make(chan error)}
				calls <- c
				select {
				case err := <-c.finish:
					return err
				case <-quit:
					return nil
				}
			},
		}), calls
	}
	late, lateCalls := node(500*time.Millisecond, 100*time.Millisecond)
	stopLate := late.Start(t)
	late.Put(t, queue.Job{Kind: "note"})
	first := queuetest.Receive(t, lateCalls, "first attempt")

	// The late node's only place is taken, so the other one gets the job.
	other, calls := node(10*time.Second, time.Minute)
	other.Start(t)
	second := queuetest.Receive(t, calls, "attempt by another worker")
	if first.attempt != 1 || second.attempt != 2 {
		t.Fatalf("attempts = %d and %d, want 1 and 2", first.attempt, second.attempt)
	}
	first.finish <- nil
	stopLate()

	// Had the late worker finished the job, this failure would find it gone.
	second.finish <- errors.New("not yet")
	third := queuetest.Receive(t, calls, "third attempt")
	if third.attempt != 3 {
		t.Errorf("attempt = %d, want 3", third.attempt)
	}
	third.finish <- nil
}

func TestLocalLeaseRenewed(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	ended := make(chan error, 10)
	n := queuetest.Open(t, dbtest.URL(t, "sqlite"), queue.Options{Lease: lease}, queue.Handler{
		Kind: "note", Timeout: time.Minute, Parallel: 2, Retry: []time.Duration{0},
		Do: func(ctx context.Context, w queue.Work) error {
			if w.Attempt > 1 {
				ended <- errors.New("the job was taken over")
			}
			select {
			case <-ctx.Done():
				ended <- context.Cause(ctx)
			case <-time.After(5 * lease / 2):
				ended <- nil
			}
			return nil
		},
	})
	n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note", Unique: "k"})
	if err := queuetest.Receive(t, ended, "end of the job"); err != nil {
		t.Errorf("a job longer than the lease ended: %v", err)
	}
	n.Finished(t, id)
}

func TestLocalLeaseNotRenewed(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 10), make(chan struct{}, 10)
	n := queuetest.Open(t, dbtest.URL(t, "sqlite"), queue.Options{Lease: 500 * time.Millisecond}, queue.Handler{
		Kind: "note", Timeout: time.Minute, Retry: []time.Duration{time.Hour},
		Do: func(ctx context.Context, w queue.Work) error {
			began <- w.ID
			if w.Attempt == 1 {
				<-ctx.Done()
				ended <- struct{}{}
				return ctx.Err()
			}
			return nil
		},
	})
	n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note", Unique: "k"})
	queuetest.Receive(t, began, "job")
	// A transaction that does not end keeps the worker from the table.
	err := n.DB.Write(t.Context(), func(*sqldb.Tx) error {
		queuetest.Receive(t, ended, "end of the job's context")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A lost lease is no failure with Retry's wait: the job is taken over.
	queuetest.Receive(t, began, "second attempt")
	n.Finished(t, id)
}
