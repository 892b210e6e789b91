// Package chaos kills the program at random moments under load and judges,
// from what its clients were told, whether it kept its promises.
//
// Every call is logged as it looked from outside: who asked for what, when,
// and the answer. A connection that broke or took too long leaves the outcome
// unknown, never failed. In the end the log, the runs, the balances, the files
// and what the receiver of events saw have to fit together.
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
	kills   = flag.Int("kills", 8, "how often the program is killed, for each database")
	seed    = flag.Uint64("seed", 0, "what the choices follow from (default: the time)")
	history = flag.String("history", "", "folder to write the log of all calls to")
)

func TestMain(m *testing.M) { program.Main(m) }

// TestChaos has clients at work while the program is killed again and again:
// the only process with SQLite, one of two with PostgreSQL.
func TestChaos(t *testing.T) {
	t.Parallel()
	for i, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := *seed
			if s == 0 {
				s = uint64(time.Now().UnixNano())
			}
			w := newInstallation(t, engine, 1+i, s)
			w.storm(*kills)
			w.judge()
			t.Logf("%s, seed %d: %s", engine, s, w.summary())
		})
	}
}

// storm lets the clients work and the program die.
func (w *installation) storm(kills int) {
	w.t.Helper()
	stop := make(chan struct{})
	var group sync.WaitGroup
	for _, c := range w.clients {
		group.Go(func() { c.work(stop) })
	}
	chance := rand.New(rand.NewPCG(w.seed, 0))
	for range kills {
		<-time.After(between(chance, 200*time.Millisecond, 3*time.Second))
		p := w.servers[chance.IntN(len(w.servers))]
		if len(w.servers) > 1 && chance.IntN(6) == 0 {
			w.pause(p, between(chance, lease, lease+2*time.Second))
		}
		w.kill(p)
		<-time.After(between(chance, 0, 300*time.Millisecond))
		p.start()
		w.check()
	}
	<-time.After(time.Second)
	close(stop)
	group.Wait()
	// Whoever does not know what became of a create with a key asks until it
	// is answered.
	for _, c := range w.clients {
		group.Go(c.resolve)
	}
	group.Wait()
}

// between is a random span.
func between(chance *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(chance.Int64N(int64(most-least)))
}
