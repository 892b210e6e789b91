package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/watch"
)

// points are the named crash points that the clients of this package reach.
// TestEveryCrashPointIsTried says who tries the others.
var points = []string{
	"create.before_tx", "create.after_person_lock", "create.after_hold", "create.after_run_insert", "create.before_commit",
	"create.after_commit_before_reply", "upload.after_tmp", "upload.after_rename", "dispatch.after_lease", "engine.after_start",
	"engine.after_first_result", "settle.before_commit", "settle.after_commit", "hook.after_connect", "hook.after_2xx_before_record",
	"sweep.after_gone", "flow.before_commit", "flow.after_advance",
}

// trouble is a fault that the storm can cause. It returns when the fault is
// over.
type trouble struct {
	name  string
	cause func(w *installation, chance *rand.Rand)
}

// troubles lists the faults besides kills, in a random order.
func (w *installation) troubles(chance *rand.Rand) []trouble {
	all := []trouble{
		{"stopped process", func(w *installation, chance *rand.Rand) {
			w.pause(w.someServer(chance), between(chance, lease, lease+2*time.Second))
		}},
	}
	for _, d := range slices.Sorted(maps.Keys(disturbanceNames)) {
		all = append(all,
			trouble{disturbanceNames[d] + " between clients and service", func(w *installation, chance *rand.Rand) {
				w.disturb(w.someServer(chance).front, d, chance, false)
			}},
			trouble{disturbanceNames[d] + " between service and receivers", func(w *installation, chance *rand.Rand) {
				w.disturb(w.sinkProxy, d, chance, false)
			}})
		if w.postgres != nil {
			all = append(all, trouble{disturbanceNames[d] + " between service and database", func(w *installation, chance *rand.Rand) {
				w.disturb(w.databaseProxy, d, chance, true)
			}})
		}
		if w.storeProxy != nil {
			all = append(all, trouble{disturbanceNames[d] + " between service and store", func(w *installation, chance *rand.Rand) {
				w.disturb(w.storeProxy, d, chance, true)
			}})
		}
	}
	if w.disk != nil {
		all = append(all, trouble{"full disk", (*installation).fillDisk})
		for _, e := range w.disk.errors {
			all = append(all, trouble{e.name, func(w *installation, chance *rand.Rand) { w.failCalls(e, chance) }})
		}
	}
	if w.postgres != nil {
		all = append(all,
			trouble{"killed database", (*installation).killDatabase},
			trouble{"hung database", (*installation).hangDatabase},
			trouble{"second leader", func(w *installation, _ *rand.Rand) { w.forgetLeader() }},
		)
	}
	all = slices.DeleteFunc(all, func(one trouble) bool { return !regexp.MustCompile(*only).MatchString(one.name) })
	if len(all) == 0 {
		w.t.Fatalf("no fault here is called %s", *only)
	}
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (w *installation) someServer(chance *rand.Rand) *server {
	return w.servers[chance.IntN(len(w.servers))]
}

// crashAtPoint restarts a process so that it dies at the next crash point in the
// list, and starts it again when it has died. A point that the clients do not
// reach within a while is left, with a kill.
func (w *installation) crashAtPoint(points []string, chance *rand.Rand) {
	point := points[w.point%len(points)]
	w.point++
	p := w.someServer(chance)
	from := time.Now()
	p.end()
	w.kills++
	p.startWith("ATELIER_CRASH=" + fmt.Sprint(point, ":", 1+chance.IntN(2)))
	select {
	case <-p.exited:
		w.crashes[point]++
	case <-time.After(8 * time.Second):
	}
	p.end()
	p.start()
	w.faults = append(w.faults, fault{from: from, to: time.Now(), server: p.address})
}

// disturb lets a proxy disturb its connections for a while.
func (w *installation) disturb(p *proxy, d disturbance, chance *rand.Rand, everywhere bool) {
	from := time.Now()
	p.disturb(d)
	<-time.After(between(chance, 300*time.Millisecond, 3*time.Second))
	p.heal()
	w.recover()
	w.faults = append(w.faults, fault{from: from, to: time.Now(), everywhere: everywhere})
}

// killDatabase kills all processes of PostgreSQL and starts it again.
func (w *installation) killDatabase(chance *rand.Rand) {
	from := time.Now()
	w.postgres.Kill()
	<-time.After(between(chance, 0, 2*time.Second))
	if err := w.postgres.Restart(); err != nil {
		w.t.Fatal(err)
	}
	w.recover()
	w.faults = append(w.faults, fault{from: from, to: time.Now(), everywhere: true})
}

// hangDatabase stops all processes of PostgreSQL for a while.
func (w *installation) hangDatabase(chance *rand.Rand) {
	from := time.Now()
	resume := w.postgres.Pause()
	<-time.After(between(chance, time.Second, 5*time.Second))
	resume()
	w.recover()
	w.faults = append(w.faults, fault{from: from, to: time.Now(), everywhere: true})
}

// forgetLeader removes the row that names the node with the periodic work. The
// other node becomes the leader while the first still believes that it is.
func (w *installation) forgetLeader() {
	from := time.Now()
	db := dbtest.Open(w.t, w.database)
	defer db.Close()
	err := db.Write(context.Background(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(context.Background(), `DELETE FROM river_leader`)
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	w.faults = append(w.faults, fault{from: from, to: time.Now()})
}

// readinessAge is how long a process may repeat the result of its last check of
// readiness.
const readinessAge = time.Second

// recover waits until every process is ready again after a fault, by a check
// that began after its end. From then on no request may fail: the requests that
// may are those that began earlier.
func (w *installation) recover() {
	w.t.Helper()
	healed := time.Now()
	defer func() { w.slowestReady = max(w.slowestReady, time.Since(healed)) }()
	<-time.After(readinessAge + 100*time.Millisecond)
	for _, p := range w.servers {
		watch.Until(w.t, "the service to recover", func() bool {
			res, err := http.Get("http://" + p.address + "/readyz")
			if err != nil {
				return false
			}
			res.Body.Close()
			return res.StatusCode == http.StatusOK
		})
	}
}

// faultSummary says how often each fault happened.
func (w *installation) faultSummary() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w.caused)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, w.caused[name]))
	}
	var died []string
	for _, name := range slices.Sorted(maps.Keys(w.crashes)) {
		died = append(died, fmt.Sprintf("%s %d", name, w.crashes[name]))
	}
	if w.t.Failed() {
		for _, f := range w.faults {
			w.t.Logf("fault from %v to %v, everywhere: %v, server: %q", f.from, f.to, f.everywhere, f.server)
		}
	}
	return fmt.Sprintf("faults: %s; died at: %s; histories: %d", strings.Join(parts, ", "), strings.Join(died, ", "), w.histories)
}
