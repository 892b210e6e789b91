package pool_test

import (
	"fmt"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/node"
	"atelier/internal/run/pool"
	"atelier/internal/run/run"
)

// fixture is a database with a tool and a person.
type fixture struct {
	dbtest.Fixture
	person string
}

func eachFixture(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, run.Checks, func(dw dbtest.Fixture) {
		w := fixture{dw, ids.New()}
		w.Exec(`INSERT INTO tool_version (hash, definition) VALUES ('hash', '{}')`)
		w.Exec(`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ('tool', 'tool', 'directory', '{}', 'hash', FALSE, 1, 1)`)
		w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 1)`, w.person)
		fn(w)
	})
}

// add queues runs with an estimated duration, which is unknown if it is zero.
func (w fixture) add(engine string, n int, estimated time.Duration) {
	w.Helper()
	for range n {
		w.Do(func(tx *sqldb.Tx) error {
			if err := run.Enqueue(w.Context(), tx, engine, w.person, 0); err != nil {
				return err
			}
			return run.Add(w.Context(), tx, run.Run{
				ID:         ids.New(),
				LibraryID:  ids.New(),
				PersonID:   w.person,
				AccountID:  w.person,
				ToolID:     "tool",
				ToolHash:   "hash",
				Engine:     engine,
				Inputs:     "{}",
				NumResults: 1,
				Estimated:  estimated,
			}, nil)
		})
	}
}

// claim lets a worker have some of the queued runs.
func (w fixture) claim(engine string, n int) {
	w.Helper()
	for range n {
		w.Do(func(tx *sqldb.Tx) error {
			_, _, ok, err := run.Claim(w.Context(), tx, run.ClaimOptions{Engine: engine, Worker: "worker", Lease: time.Hour})
			if err == nil && !ok {
				err = fmt.Errorf("no run of %s can be claimed", engine)
			}
			return err
		})
	}
}

// report lets a node report its engines.
func (w fixture) report(id string, engines ...node.Engine) {
	w.Helper()
	r := node.Reporter{DB: w.DB, Node: node.Node{ID: id, Roles: []string{"worker"}, Started: w.Now()}, Engines: func() []node.Engine { return engines }}
	w.OK(r.ReportNow(w.Context()))
}

// loads returns the load of all pools in a short form.
func (w fixture) loads() (lines []string) {
	w.Helper()
	w.OK(w.DB.Read(w.Context(), func(tx *sqldb.Tx) error {
		lines = nil
		queues, err := run.Queues(w.Context(), tx)
		if err != nil {
			return err
		}
		all, err := pool.ReadLoads(w.Context(), tx, queues)
		for _, l := range all {
			age := time.Duration(0)
			if !l.Oldest.IsZero() {
				age = tx.Now.Sub(l.Oldest)
			}
			lines = append(lines, fmt.Sprintf("%s: %d workers, %d of %d running, %d waiting for %v, wait %s, %d engines",
				l.Name, l.Workers, l.Running, l.Capacity, l.Waiting, age, describe(l.EstimatedWait), len(l.Engines)))
		}
		return err
	}))
	return lines
}

func describe(d *time.Duration) string {
	if d == nil {
		return "unknown"
	}
	return d.String()
}

// expect compares the load of all pools.
func (w fixture) expect(what string, want ...string) {
	w.Helper()
	if got := w.loads(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s:\n%q, want\n%q", what, got, want)
	}
}

func TestLoads(t *testing.T) {
	eachFixture(t, func(w fixture) {
		w.expect("nothing is declared")
		w.Do(func(tx *sqldb.Tx) error {
			return run.DeclareEngines(w.Context(), tx, map[string]string{"flux": "gpu", "video": "gpu", "image": "cpu"})
		})
		w.expect("no worker is live",
			"cpu: 0 workers, 0 of 0 running, 0 waiting for 0s, wait 0s, 1 engines", "gpu: 0 workers, 0 of 0 running, 0 waiting for 0s, wait 0s, 2 engines")

		w.add("flux", 6, 10*time.Second)
		w.Pass(time.Minute)
		w.expect("runs wait for a pool that nobody serves",
			"cpu: 0 workers, 0 of 0 running, 0 waiting for 0s, wait 0s, 1 engines", "gpu: 0 workers, 0 of 0 running, 6 waiting for 1m0s, wait unknown, 2 engines")

		// Two workers share a limit of 3 on flux.
		flux := node.Engine{Name: "flux", Pool: "gpu", Available: true, Capacity: 3, Limit: 3}
		w.report("one", flux, node.Engine{Name: "video", Pool: "gpu", Available: true, Capacity: 1})
		w.report("two", flux, node.Engine{Name: "image", Pool: "cpu", Available: true, Capacity: 8})
		w.claim("flux", 2)
		w.expect("the limit counts once for all nodes; 4 wait and 2 are half done, 5 runs of 10 s in 3 places",
			"cpu: 1 workers, 0 of 8 running, 0 waiting for 0s, wait 0s, 1 engines", "gpu: 2 workers, 2 of 4 running, 4 waiting for 1m0s, wait 16.666666666s, 2 engines")
		w.add("video", 1, 0)
		w.claim("video", 1)
		w.expect("video is full, and nobody knows for how long",
			"cpu: 1 workers, 0 of 8 running, 0 waiting for 0s, wait 0s, 1 engines", "gpu: 2 workers, 3 of 4 running, 4 waiting for 1m0s, wait unknown, 2 engines")

		flux.Available = false
		w.report("one", flux)
		w.report("two", flux)
		w.expect("a server that nobody reaches has no places",
			"cpu: 0 workers, 0 of 0 running, 0 waiting for 0s, wait 0s, 1 engines", "gpu: 2 workers, 3 of 0 running, 4 waiting for 1m0s, wait unknown, 2 engines")

		w.Pass(25 * time.Hour)
		w.expect("what nobody declares for a day and no run needs is left out",
			"gpu: 0 workers, 3 of 0 running, 4 waiting for 25h1m0s, wait unknown, 2 engines")
	})
}
