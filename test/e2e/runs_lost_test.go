package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

// running starts runs on a node and waits until all of them are running there.
func (n *node) running(count int, o order) {
	n.t.Helper()
	for i := range count {
		a, err := n.create(n.token, "", o, nil, "Idempotency-Key", fmt.Sprint("key-", i))
		if err != nil {
			n.t.Fatal(err)
		}
		a.want(n.t, 202)
	}
	n.until(n.token, "", func(r map[string]any) bool { return r["stage"] == "running" })
}

// TestKilledWithRunsInHand kills a worker with ten runs going: another takes
// them soon.
func TestKilledWithRunsInHand(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			const lease = 3 * time.Second
			s := newStage(t, engine, "ATELIER_RUNS_LEASE="+lease.String())
			token := s.token("anna@example.com")
			s.grant("--email", "anna@example.com", 10*unit)
			n := s.serve()
			n.token = token
			count := filepath.Join(t.TempDir(), "count")
			n.running(10, n.order(1, countTo(count), pause(10*time.Second), picture))
			watch.Until(t, "all runs have begun", func() bool { return len(started(t, count)) == 10 })
			n.kill()
			lost := time.Now()
			n = s.serve()
			all := n.settled(token, "")
			took := time.Since(lost)
			t.Logf("all had ended %v after the kill", took.Round(time.Millisecond))
			watch.Took(t, "the end of all runs after the kill", took, lease+time.Minute)
			for _, r := range all {
				if r["status"] != "succeeded" || r["tokens_charged"] != float64(unit) || len(r["outputs"].([]any)) != 1 {
					t.Errorf("a run = %v", r)
				}
			}
			if starts := started(t, count); len(all) != 10 || len(starts) != 20 || len(slices.Compact(slices.Sorted(slices.Values(starts)))) != 20 {
				t.Errorf("%d runs, begun in %q; want ten, each in two attempts", len(all), starts)
			}
			if tokens, held := n.balance(token, ""); tokens != 0 || held != 0 {
				t.Errorf("balance = %v with %v held, want nothing", tokens, held)
			}
			n.stop()
			s.check()
		})
	}
}

// TestPausedWorkerChangesNothing stops a worker past its leases. When it goes
// on, its runs were ended by another, and stay as they are.
func TestPausedWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	const runs = 5
	s := newStage(t, "postgres", "ATELIER_RUNS_LEASE=2s")
	token := s.token("anna@example.com")
	s.grant("--email", "anna@example.com", 100*unit)
	first := s.serve()
	first.token = token
	count := filepath.Join(t.TempDir(), "count")
	first.running(runs, first.order(2, countTo(count), picture, pause(4*time.Second), picture))
	// A run is running before its engine has begun.
	watch.Until(t, "every run to begin", func() bool {
		lines, _ := os.ReadFile(count)
		return bytes.Count(lines, []byte("\n")) == runs
	})
	first.signal(syscall.SIGSTOP)
	second := s.serve()
	before := second.settled(token, "")
	first.signal(syscall.SIGCONT)
	watch.Until(t, "the first worker to give its runs up", func() bool {
		log := first.stderr.String()
		return strings.Count(log, "run taken over by another worker")+strings.Count(log, "could not store the end of a run") == runs
	})
	after := second.runs(token, "")
	for id, r := range before {
		if r["status"] != "succeeded" || r["tokens_charged"] != 2.0*unit {
			t.Errorf("a run = %v", r)
		}
		if was, is := program.Fixed(t, r), program.Fixed(t, after[id]); was != is {
			t.Errorf("a run was %s and is %s", was, is)
		}
	}
	want := map[string]int{}
	for id := range before {
		want[id+" 1"], want[id+" 2"] = 1, 1
	}
	got := map[string]int{}
	for _, line := range started(t, count) {
		got[line]++
	}
	if len(before) != runs || !maps.Equal(got, want) {
		t.Errorf("%d runs, begun in %v; want %d, each in two attempts", len(before), got, runs)
	}
	if tokens, held := second.balance(token, ""); tokens != (100-2*runs)*unit || held != 0 {
		t.Errorf("balance = %v with %v held", tokens, held)
	}
	first.stop()
	second.stop()
	if s.bucket != nil {
		// The S3 server may finish a write that the worker has given up, after the
		// worker has deleted the file. The sweep deletes it again.
		program.ForgetDead(t, dbtest.Open(t, s.database))
		s.env = append(s.env, "ATELIER_RETENTION_ORPHANS=1ms", "ATELIER_RETENTION_EVERY=1s")
		third := s.serve()
		defer third.stop()
	}
	s.keptFiles()
	s.check()
}
