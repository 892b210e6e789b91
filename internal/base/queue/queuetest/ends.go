package queuetest

import (
	"context"
	"testing"
	"time"

	"atelier/internal/base/queue"
)

// untilEnd returns a handler that sends the job's id to a channel and then
// blocks until its context ends.
func untilEnd(s *starts) (queue.Handler, <-chan string) {
	began := make(chan string, 10)
	h := handler(s, "note", func(ctx context.Context, w queue.Work) error {
		began <- w.ID
		<-ctx.Done()
		return ctx.Err()
	})
	h.Retry = []time.Duration{0, 0}
	return h, began
}

func drained(t *testing.T, address string) {
	var s starts
	began := make(chan string, 100)
	release := make(chan struct{})
	ended := make(chan error, 100)
	h := handler(&s, "note", func(ctx context.Context, w queue.Work) error {
		began <- w.ID
		err := held(ctx, release)
		ended <- err
		return err
	})
	h.Parallel = 100
	n := Open(t, address, queue.Options{Drain: 2 * timeout}, h)
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- n.Run(ctx) }()
	id := n.Put(t, queue.Job{Kind: "note"})
	Receive(t, began, "job")
	cancel()
	// Run notices the end of its context with a delay, and jobs that it starts
	// before that run to their end. So jobs are added until one is not started.
	var late string
	for taking := true; taking; {
		late = n.Put(t, queue.Job{Kind: "note"})
		select {
		case <-began:
		case err := <-returned:
			t.Fatalf("run returned %v while a job runs", err)
		case <-time.After(second):
			taking = false
		}
	}
	close(release)
	if err := Receive(t, ended, "end of the job"); err != nil {
		t.Errorf("the job's context ended: %v", err)
	}
	if err := Receive(t, returned, "end of Run"); err != nil {
		t.Errorf("run: %v", err)
	}
	s.wantAttempts(t, late)
	n.Start(t)
	if got := Receive(t, began, "job left for later"); got != late {
		t.Errorf("job = %s, want %s", got, late)
	}
	s.wantAttempts(t, id, 1)
}

func handedBack(t *testing.T, address string) {
	var s starts
	h, began := untilEnd(&s)
	h.Retry = nil // no retries, so if this attempt counted, there would be no further attempt
	n := Open(t, address, queue.Options{Drain: 100 * time.Millisecond}, h)
	stop := n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note"})
	Receive(t, began, "job")
	stop()
	n.Start(t)
	if got := Receive(t, began, "job again"); got != id {
		t.Errorf("job = %s, want %s", got, id)
	}
	s.wantAttempts(t, id, 1, 1)
}

func runsOnce(t *testing.T, address string) {
	var s starts
	h, did := telling(&s, "note")
	n := Open(t, address, queue.Options{}, h)
	n.Start(t)
	n.Put(t, queue.Job{Kind: "note"})
	Receive(t, did, "job")
	if err := n.Run(t.Context()); err == nil {
		t.Error("the queue runs twice")
	}
}

func pinged(t *testing.T, address string) {
	n := Open(t, address, queue.Options{})
	if err := n.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	n.DB.Close()
	if n.Ping(t.Context()) == nil {
		t.Error("a closed database answers")
	}
}
