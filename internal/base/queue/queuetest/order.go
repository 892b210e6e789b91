package queuetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/queue"
)

func unique(t *testing.T, address string) {
	var s starts
	running := make(chan string, 10)
	release := make(chan struct{})
	h := handler(&s, "note", func(ctx context.Context, w queue.Work) error {
		running <- w.ID
		return held(ctx, release)
	})
	n := Open(t, address, queue.Options{}, h)
	ids := make([]string, 64)
	var adds sync.WaitGroup
	for i := range ids {
		adds.Go(func() {
			var err error
			if ids[i], err = n.put(queue.Job{Kind: "note", Unique: "k"}); err != nil {
				t.Errorf("add job: %v", err)
			}
		})
	}
	adds.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("ids = %q, want one and the same", ids)
		}
	}
	if n.Put(t, queue.Job{Kind: "note", Unique: "other"}) == ids[0] || n.Put(t, queue.Job{Kind: "memo", Unique: "k"}) == ids[0] {
		t.Error("another key or kind is the same job")
	}
	n.Start(t)
	if got := Receive(t, running, "job"); got != ids[0] {
		t.Errorf("job = %s, want %s", got, ids[0])
	}
	if got := n.Put(t, queue.Job{Kind: "note", Unique: "k"}); got != ids[0] {
		t.Errorf("job added while one runs = %s, want %s", got, ids[0])
	}
	close(release)
	Receive(t, running, "job with the other key")
	n.Finished(t, ids[0])
	s.wantAttempts(t, ids[0], 1)
	if n.Put(t, queue.Job{Kind: "note", Unique: "k"}) == ids[0] {
		t.Error("a finished job keeps its key")
	}
}

func betweenAttempts(t *testing.T, address string) {
	var s starts
	began := make(chan string, 10)
	h := handler(&s, "note", func(_ context.Context, w queue.Work) error {
		began <- w.ID
		return errTest
	})
	h.Retry = []time.Duration{time.Hour}
	n := Open(t, address, queue.Options{}, h)
	n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note", Unique: "k"})
	Receive(t, began, "job")
	// The outcome is stored some time after the handler has returned.
	for until := time.Now().Add(second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if got := n.Put(t, queue.Job{Kind: "note", Unique: "k"}); got != id {
			t.Fatalf("job = %s, want %s, which waits for its next attempt", got, id)
		}
	}
	s.wantAttempts(t, id, 1)
}

func parallel(t *testing.T, address string) {
	var s starts
	var now, most atomic.Int64
	began := make(chan string, 10)
	release := make(chan struct{})
	h := handler(&s, "note", func(ctx context.Context, w queue.Work) error {
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		defer now.Add(-1)
		began <- w.ID
		return held(ctx, release)
	})
	h.Parallel = 2
	memo, did := telling(&s, "memo")
	n := Open(t, address, queue.Options{}, h, memo)
	n.Start(t)
	for range 6 {
		n.Put(t, queue.Job{Kind: "note"})
	}
	Receive(t, began, "first job")
	Receive(t, began, "second job")
	n.Put(t, queue.Job{Kind: "memo"})
	Receive(t, did, "job of another kind")
	close(release)
	for range 4 {
		Receive(t, began, "job")
	}
	if got := most.Load(); got != 2 {
		t.Errorf("jobs at once = %d, want 2", got)
	}
}

func twoNodes(t *testing.T, address string) {
	const jobs = 200
	var s starts
	did := make(chan string, 2*jobs)
	took := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	var nodes [2]*Node
	for i := range nodes {
		first := sync.OnceFunc(func() { close(took[i]) })
		h := handler(&s, "note", func(ctx context.Context, w queue.Work) error {
			first()
			select {
			case <-took[1-i]: // waits until the other node runs a job too
			case <-ctx.Done():
				return ctx.Err()
			}
			did <- w.ID
			return nil
		})
		h.Parallel = 4
		nodes[i] = Open(t, address, queue.Options{}, h)
	}
	stops := []func(){nodes[0].Start(t), nodes[1].Start(t)}
	var ids []string
	for i := range jobs {
		ids = append(ids, nodes[i%2].Put(t, queue.Job{Kind: "note"}))
	}
	for range jobs {
		Receive(t, did, "job")
	}
	for _, stop := range stops {
		stop()
	}
	for _, id := range ids {
		s.wantAttempts(t, id, 1)
	}
}

func everySoOften(t *testing.T, address string) {
	const every, runs = 500 * time.Millisecond, 9
	var s starts
	h, did := telling(&s, "sweep")
	h.Every = every
	nodes := []*Node{Open(t, address, queue.Options{}, h), Open(t, address, queue.Options{}, h)}
	began := time.Now()
	for _, n := range nodes {
		n.Start(t)
	}
	for range runs {
		Receive(t, did, "next run")
	}
	// If each node added its own jobs, the runs would take half the time plus
	// the time that River needs to elect a leader. River may start a job up to
	// 0.1 s early.
	if took := time.Since(began); took < (runs-1)*every-100*time.Millisecond {
		t.Errorf("%d runs took %s, want %s", runs, took, (runs-1)*every)
	}
}

func everySoon(t *testing.T, address string) {
	var s starts
	h, did := telling(&s, "sweep")
	h.Every = time.Hour
	Open(t, address, queue.Options{}, h).Start(t)
	Receive(t, did, "first run")
}
