// Package simulation runs the queue, the leases, the ledger and the webhooks of
// several nodes in one process, with a clock that jumps to the next event, and
// checks invariants while nodes crash.
//
// These parts are real: the services that create, cancel, poll and end runs,
// the runner with its leases and its reaper, the ledger, the rate limits, the
// sender of webhooks with its leases and retries, the file store, and a SQLite
// database that all nodes share. These are simulated: time (testing/synctest,
// so that an hour takes as long as the work in it), the engine, the clients,
// the crashes, and the clocks of the nodes, which differ and jump.
//
// A crash happens in front of a statement: every goroutine of the node ends at
// its next statement, and its open transaction is rolled back. So each
// statement is a step at which a node can die. Nodes are not paused, because
// SQLite would wait in real time for their locks; instead a node whose clock is
// ahead takes over the runs and events of another that still works on them.
// Package chaos stops whole processes.
//
// All choices and random ids follow from a seed. A failure prints the seed, and
// "-args -seed N" repeats the choices; the order of goroutines that run at the
// same simulated instant is not repeated. "-args -steps N -rounds N" is the long
// form: each round has its own seed and database.
package simulation

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

var (
	seed   = flag.Uint64("seed", 0, "seed of the first round (default: the time)")
	steps  = flag.Int64("steps", 12_000, "number of SQL statements in a round")
	rounds = flag.Int("rounds", 1, "number of rounds")
)

// TestSimulation runs clients, nodes and faults until the steps of a round are
// used up, then lets everything end, and compares the result with what the
// clients were told.
func TestSimulation(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	// With one processor few things depend on the system's scheduler.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var sum counts
	for i := range *rounds {
		s := first + uint64(i)
		ok := t.Run(fmt.Sprint("seed ", s), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, s)
			r := newReceiver(t)
			address := newDatabase(t)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := newWorld(t, s, address, r)
				w.simulate(*steps)
				w.finish()
				w.judge()
				w.counts.simulated = time.Since(began)
				sum.add(w.counts)
			})
		})
		if !ok {
			t.Fatalf("violated; repeat with -args -seed %d -steps %d", s, *steps)
		}
	}
	t.Logf("seeds %d to %d: %s", first, first+uint64(*rounds)-1, sum)
}
