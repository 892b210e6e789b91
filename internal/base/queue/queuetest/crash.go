package queuetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
)

// childEnv is the environment variable that contains the database URL for the
// child process.
const childEnv = "ATELIER_QUEUETEST_CHILD"

// Child is the main function of the process that the crash test kills. A test
// binary that uses Run calls it first in TestMain. It returns immediately
// unless the binary was started as that process.
func Child() {
	address := os.Getenv(childEnv)
	if address == "" {
		return
	}
	if err := runChild(address); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runChild starts jobs, prints the id of each, and never finishes them.
func runChild(address string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin) // returns when the parent ends
		os.Exit(1)
	}()
	defer cancel()
	db, err := sqldb.Open(ctx, address, sqldb.Options{MaxConns: 8, Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	q, err := queue.Open(db, crashOptions)
	if err != nil {
		return err
	}
	return q.Run(ctx, crashHandlers(func(_ context.Context, w queue.Work) error {
		fmt.Println(w.ID)
		select {}
	}))
}

var crashOptions = queue.Options{Now: time.Now, Poll: 50 * time.Millisecond, Lease: 2 * second}

// crashHandlers returns a handler with two attempts and one with a single
// attempt. Their timeout is short, because River recognizes the job of a dead
// process only after the timeout.
func crashHandlers(do func(context.Context, queue.Work) error) []queue.Handler {
	return []queue.Handler{
		{Kind: "note", Timeout: second, Retry: []time.Duration{0}, Do: do},
		{Kind: "memo", Timeout: second, Do: do},
	}
}

// crashed kills a process that runs two jobs. The job that has an attempt left
// runs again, and the job in its last attempt ends without another.
func crashed(t *testing.T, address string) {
	did := make(chan queue.Work, 10)
	n := Open(t, address, crashOptions, crashHandlers(func(_ context.Context, w queue.Work) error {
		did <- w
		return nil
	})...)
	limit := timeout
	if n.DB.Pool() != nil {
		if testing.Short() {
			t.Skip("River finds a dead worker's job only after half a minute")
		}
		limit = 120 * time.Second // time for River to elect a leader (21 s), to rescue the job and to schedule it
	}
	id := n.Put(t, queue.Job{Kind: "note"})
	last := n.Put(t, queue.Job{Kind: "memo"})

	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+address)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatalf("start child: %v", err)
	}
	started := map[string]bool{}
	lines := bufio.NewScanner(stdout)
	for len(started) < 2 && lines.Scan() {
		started[lines.Text()] = true
	}
	child.Process.Kill()
	child.Wait()
	if !started[id] || !started[last] {
		t.Fatalf("the child started %v (%v), want %s and %s", started, lines.Err(), id, last)
	}

	n.Start(t)
	select {
	case w := <-did:
		if w.ID != id || w.Attempt != 2 {
			t.Errorf("work = job %s attempt %d, want %s attempt 2", w.ID, w.Attempt, id)
		}
	case <-time.After(limit):
		t.Fatalf("the job of the killed process did not run within %s", limit)
	}
	n.Finished(t, last)
	select {
	case w := <-did:
		t.Errorf("job %s of kind %s ran again in attempt %d", w.ID, w.Kind, w.Attempt)
	default:
	}
}
