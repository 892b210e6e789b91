// Package chaos kills and disturbs the program under load and judges, from what
// its clients were told, whether it kept its promises.
//
// Processes are killed at random moments and at named crash points, and stopped
// and continued. PostgreSQL is killed and restarted, and stopped and continued.
// Proxies between clients and service, and between service and database, store
// and receivers, delay, reset, truncate and swallow. Disks are full, read-only,
// and fail to sync. The node with the periodic work gets a rival. Jumps of
// clocks are tried in test/simulation.
//
// Every call is logged as it looked from outside: who asked for what, when,
// and the answer. A connection that broke or took too long leaves the outcome
// unknown, never failed. In the end the log, the runs, the balances, the files
// and what the receiver of events saw have to fit together.
//
// The histories of keys, runs and balances are also given to porcupine, which
// looks for an order of the calls that explains all answers.
//
// In the suite this is a short form. "make chaos" is the long one; -seed
// repeats the choices of a run, though not the moments of its kills.
package chaos

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/test/program"
)

var (
	kills     = flag.Int("kills", 8, "how often the program is killed, for each database")
	long      = flag.Duration("for", 0, "how long the faults go on, for each database; -kills has no meaning then")
	flowKills = flag.Int("flow-kills", 12, "how often the program is killed under flows, for each database")
	seed      = flag.Uint64("seed", 0, "what the choices follow from (default: the time)")
	only      = flag.String("only", "", "regular expression: faults besides kills that are caused (default: all)")
	history   = flag.String("history", "", "folder to write the log of all calls to")
)

func TestMain(m *testing.M) { program.Main(m) }

// TestChaos has clients at work while the program is killed again and again:
// the only process with SQLite, one of two with PostgreSQL.
func TestChaos(t *testing.T) {
	t.Parallel()
	for i, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newInstallation(t, engine, 1+i, chosenSeed(t), load{flowShare: 15, perMinute: 30, perHour: 300})
			w.storm(w.causeTroubles)
			w.judge()
			t.Logf("%s, seed %d: %s; %s; %s", engine, w.seed, w.summary(), w.faultSummary(), w.flowSummary())
		})
	}
}

// chosenSeed is the seed of the flag, or one of the time. A test that fails says
// how to repeat it.
func chosenSeed(t *testing.T) uint64 {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with -args -seed %d", s)
		}
	})
	return s
}

// storm lets the clients work and the program die, as disturb wants it.
func (w *installation) storm(disturb func(chance *rand.Rand)) {
	w.t.Helper()
	stop := make(chan struct{})
	var group sync.WaitGroup
	for _, c := range w.clients {
		group.Go(func() { c.work(stop) })
	}
	for i, a := range w.accounts {
		group.Go(func() { w.watch(a, len(w.clients)+i, stop) })
	}
	watched := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { w.starvation.watch(w, watched) })
	disturb(rand.New(rand.NewPCG(w.seed, 0)))
	<-time.After(time.Second)
	close(stop)
	group.Wait()
	// Whoever does not know what became of a create with a key asks until it
	// is answered.
	for _, c := range w.clients {
		group.Go(c.resolve)
	}
	group.Wait()
	close(watched)
	watching.Wait()
	w.faults = append(w.faults, w.starvation.faults...)
}

// causeTroubles kills processes, and causes all other faults in turn.
func (w *installation) causeTroubles(chance *rand.Rand) {
	troubles := w.troubles(chance)
	began := time.Now()
	for i := 0; *long == 0 && i < *kills || time.Since(began) < *long; i++ {
		<-time.After(between(chance, 200*time.Millisecond, 3*time.Second))
		if i%2 == 1 {
			one := troubles[i/2%len(troubles)]
			one.cause(w, chance)
			w.caused[one.name]++
			w.check()
			continue
		}
		if i%4 == 2 {
			w.crashAtPoint(points, chance)
			w.check()
			continue
		}
		p := w.someServer(chance)
		if len(w.servers) > 1 && chance.IntN(6) == 0 {
			w.pause(p, between(chance, lease, lease+2*time.Second))
		}
		w.kill(p, between(chance, 0, 300*time.Millisecond))
		w.check()
	}
}

// between is a random span.
func between(chance *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(chance.Int64N(int64(most-least)))
}
