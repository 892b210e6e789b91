package run_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/run"
)

const (
	engine = "script"
	lease  = 30 * time.Second
)

// fixture is a database with a tool and without workers.
type fixture struct {
	dbtest.Fixture
	toolID string
}

func eachFixture(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, run.Checks, func(dw dbtest.Fixture) {
		w := fixture{dw, ids.New()}
		w.Exec(`INSERT INTO tool_version (hash, definition) VALUES ('v1:test', '{}')`)
		w.tool(w.toolID)
		fn(w)
	})
}

func (w fixture) tool(id string) {
	w.Helper()
	w.Exec(`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ($1, $1, 'directory', '{}', 'v1:test', FALSE, 1, 1)`, id)
}

func (w fixture) person() string {
	w.Helper()
	id := ids.New()
	w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $2, $2, TRUE, '', 1)`, id, id+"@example.com")
	return id
}

// draft returns a run that the person's own account pays.
func (w fixture) draft(personID string) run.Run {
	return run.Run{
		ID: uuid.NewString(), LibraryID: ids.New(), PersonID: personID, AccountID: personID, ToolID: w.toolID, ToolHash: "v1:test", Engine: engine,
		Inputs: "{}", NumResults: 2, PollAfter: 2 * time.Second, UnitTokens: 3, TokensHeld: 4, AllowanceHeld: 2, AllowanceMonth: "2026-11",
	}
}

func (w fixture) insert(r run.Run) string {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) error { return add(w.Context(), tx, r, nil) })
	return r.ID
}

// add queues a run of a person.
func (w fixture) add(personID string) string { w.Helper(); return w.insert(w.draft(personID)) }

func (w fixture) get(id string) run.Run {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (run.Run, error) { return run.GetUnscoped(w.Context(), tx, id) })
}

// try claims the next run, if there is one.
func (w fixture) try(worker string) (r run.Run, ok bool) {
	w.Helper()
	w.Do(func(tx *sqldb.Tx) (err error) {
		r, _, ok, err = run.Claim(w.Context(), tx, run.ClaimOptions{Engine: engine, Worker: worker, Lease: lease})
		return err
	})
	return r, ok
}

func (w fixture) claim(worker string) run.Run {
	w.Helper()
	r, ok := w.try(worker)
	if !ok {
		w.Fatal("nothing to claim")
	}
	return r
}

func (w fixture) end(r run.Run, o run.Outcome) (ok bool) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (ok bool, err error) {
		_, ok, err = run.End(w.Context(), tx, r, o)
		return ok, err
	})
}

func (w fixture) requeue(r run.Run, why string) (ok bool) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) { return run.Requeue(w.Context(), tx, hold(r), why) })
}

func (w fixture) report(r run.Run, progress int64, preview string) (ok bool) {
	w.Helper()
	return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (bool, error) {
		return run.SetProgress(w.Context(), tx, hold(r), run.Progress{Thousandths: &progress, Preview: preview})
	})
}

func (w fixture) turn(personID string) (waiting int64) {
	w.Helper()
	w.OK(w.DB.QueryRow(w.Context(), `SELECT coalesce(max(waiting), 0) FROM run_turn WHERE engine = $1 AND person_id = $2`, engine, personID).Scan(&waiting))
	return waiting
}

func hold(r run.Run) run.Lease { return run.Lease{ID: r.ID, Attempt: r.Attempt} }

// outcome returns a possible outcome of a run that ends in a state.
func outcome(s run.State) run.Outcome {
	o := run.Outcome{State: s}
	if s == run.Failed {
		o.ErrorCode, o.ErrorText = "ENGINE_FAILED", "It broke."
	}
	return o
}

// bring puts a new run into a state.
func (w fixture) bring(personID string, s run.State) run.Run {
	w.Helper()
	id := w.add(personID)
	if s == run.Queued {
		return w.get(id)
	}
	r := w.claim("worker")
	if r.ID != id {
		w.Fatalf("claimed %s, want %s", r.ID, id)
	}
	if s != run.Running && !w.end(r, outcome(s)) {
		w.Fatalf("a run cannot be %s", s)
	}
	return w.get(id)
}

// add queues a new run.
func add(ctx context.Context, tx *sqldb.Tx, r run.Run, inputs []run.Input) error {
	if err := run.Enqueue(ctx, tx, r.Engine, r.PersonID, r.HeadStart); err != nil {
		return err
	}
	return run.Add(ctx, tx, r, inputs)
}
