package queuetest

import (
	"context"
	"testing"
	"time"

	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
)

func committed(t *testing.T, address string) {
	var s starts
	h, did := telling(&s, "note")
	n := Open(t, address, queue.Options{}, h)
	n.Start(t)
	var lost string
	err := n.DB.Write(t.Context(), func(tx *sqldb.Tx) (err error) {
		if lost, err = n.Add(t.Context(), tx, queue.Job{Kind: "note"}); err != nil {
			t.Errorf("add job: %v", err)
		}
		return errTest
	})
	if err == nil {
		t.Fatal("the transaction was committed")
	}
	first := n.Put(t, queue.Job{Kind: "note"})
	if got := Receive(t, did, "job"); got != first {
		t.Errorf("first job = %s, want %s", got, first)
	}
	// Jobs run one at a time and in order, so the job of the transaction that
	// was rolled back would have run by now.
	last := n.Put(t, queue.Job{Kind: "note"})
	if got := Receive(t, did, "job"); got != last {
		t.Errorf("second job = %s, want %s", got, last)
	}
	s.wantAttempts(t, first, 1)
	s.wantAttempts(t, lost)
}

func woken(t *testing.T, address string) {
	var s starts
	h, did := telling(&s, "note")
	n := Open(t, address, queue.Options{Poll: time.Hour}, h)
	n.Start(t)
	for range 3 {
		id := n.Put(t, queue.Job{Kind: "note", Unique: "k"})
		Receive(t, did, "job")
		// The end of a job also wakes the queue. The test waits for that end,
		// so that only its own commit can wake the queue for the next job.
		n.Finished(t, id)
	}
}

func arguments(t *testing.T, address string) {
	var s starts
	h, did := telling(&s, "note")
	n := Open(t, address, queue.Options{}, h)
	n.Start(t)
	for _, args := range []string{"", `{"b": 1, "a":2,"a":  1e400, "text":"\u0000 é 🎨"}`, `"just text"`, `null`} {
		id := n.Put(t, queue.Job{Kind: "note", Args: []byte(args)})
		Receive(t, did, "job")
		if got := s.of(id)[0]; string(got.Args) != args || got.Kind != "note" {
			t.Errorf("work = %s %s, want note %s", got.Kind, got.Args, args)
		}
	}
}

func refused(t *testing.T, address string) {
	n := Open(t, address, queue.Options{})
	for name, j := range map[string]queue.Job{
		"no kind":              {},
		"a kind with a space":  {Kind: "a note"},
		"arguments of no form": {Kind: "note", Args: []byte(`{`)},
		"arguments not text":   {Kind: "note", Args: []byte("\"\xff\"")},
		"a key not text":       {Kind: "note", Unique: "a\x00"},
	} {
		if _, err := n.put(j); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := n.Run(t.Context()); err == nil {
		t.Error("a queue without handlers runs")
	}
}

func retried(t *testing.T, address string) {
	var s starts
	h := handler(&s, "note", func(context.Context, queue.Work) error { return errTest })
	h.Retry = []time.Duration{300 * time.Millisecond, 100 * time.Millisecond}
	n := Open(t, address, queue.Options{}, h)
	n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note", Unique: "k"})
	n.Finished(t, id)
	s.wantAttempts(t, id, 1, 2, 3)
	s.wantWaits(t, id, h.Retry...)
}

func addedElsewhere(t *testing.T, address string) {
	var s starts
	h := handler(&s, "note", func(context.Context, queue.Work) error { return errTest })
	h.Retry = []time.Duration{0}
	adder := Open(t, address, queue.Options{})
	id := adder.Put(t, queue.Job{Kind: "note", Unique: "k"})
	Open(t, address, queue.Options{}, h).Start(t)
	adder.Finished(t, id)
	s.wantAttempts(t, id, 1, 2)
}

func gaveUp(t *testing.T, address string) {
	var s starts
	h := handler(&s, "note", func(context.Context, queue.Work) error { return queue.GiveUp(errTest) })
	h.Retry = []time.Duration{0, 0}
	n := Open(t, address, queue.Options{}, h)
	n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note", Unique: "k"})
	n.Finished(t, id)
	s.wantAttempts(t, id, 1)
}

func panicked(t *testing.T, address string) {
	var s starts
	did := make(chan string, 1)
	h := handler(&s, "note", func(_ context.Context, w queue.Work) error {
		if w.Attempt == 1 {
			panic("as the test wants it\x00") // PostgreSQL cannot store the zero byte
		}
		did <- w.ID
		return nil
	})
	h.Retry = []time.Duration{0}
	n := Open(t, address, queue.Options{}, h)
	n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note"})
	Receive(t, did, "second attempt")
	s.wantAttempts(t, id, 1, 2)
}

func timedOut(t *testing.T, address string) {
	var s starts
	did := make(chan string, 1)
	h := handler(&s, "note", func(ctx context.Context, w queue.Work) error {
		if w.Attempt == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		did <- w.ID
		return nil
	})
	h.Retry = []time.Duration{0}
	h.Timeout = second
	patient, _ := telling(&s, "memo")
	n := Open(t, address, queue.Options{}, h, patient)
	n.Start(t)
	id := n.Put(t, queue.Job{Kind: "note"})
	Receive(t, did, "second attempt")
	s.wantAttempts(t, id, 1, 2)
}
