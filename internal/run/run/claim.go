package run

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
)

// Enqueue counts one more queued run of a person. A create calls it before it
// locks the ledger's account, see the order of locks above the package, and Add
// in the same transaction.
func Enqueue(ctx context.Context, tx *sqldb.Tx, engine, personID string) error {
	return waits(ctx, tx, engine, personID, 1)
}

// Add stores a new queued run, for which Enqueue was called. What it says about
// its state, attempt and times counts for nothing.
func Add(ctx context.Context, tx *sqldb.Tx, r Run, inputs []Input) error {
	if err := insert(ctx, tx, r); err != nil {
		return err
	}
	for _, in := range inputs {
		if err := insertInput(ctx, tx, r.ID, in); err != nil {
			return err
		}
	}
	return nil
}

// Claim gives the worker the next run for an engine, with its inputs, until
// the lease ends. ok is false where nothing waits that can be had now.
func Claim(ctx context.Context, tx *sqldb.Tx, engine, worker string, lease time.Duration) (r Run, inputs []Input, ok bool, err error) {
	none := func(err error) (Run, []Input, bool, error) {
		if errors.Is(err, sqldb.ErrNoRows) {
			err = nil
		}
		return Run{}, nil, false, err
	}
	personID, err := nextPerson(ctx, tx, engine)
	if err != nil {
		return none(err)
	}
	id, err := oldest(ctx, tx, engine, personID)
	if err != nil {
		return none(err)
	}
	if r, err = take(ctx, tx, id, worker, tx.Now.Add(lease)); err != nil {
		return none(err)
	}
	inputs, err = inputsOf(ctx, tx, r.ID)
	return r, inputs, err == nil, err
}

// Renew moves the end of a worker's leases on the runs that it works on, and
// gives those that it still holds: the others are somebody else's by now. What
// the worker holds and does not work on is not renewed, so that others take it.
func Renew(ctx context.Context, tx *sqldb.Tx, worker string, ids []string, lease time.Duration) ([]Held, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return renew(ctx, tx, worker, ids, tx.Now.Add(lease))
}

// HeldBy gives the runs that a worker holds.
func HeldBy(ctx context.Context, tx *sqldb.Tx, worker string) ([]Held, error) {
	return held(ctx, tx, worker)
}

// Report says how far a run is: in thousandths, nil where nobody knows, and
// the key of the newest preview. ok is false where the run is no longer the
// attempt's.
func Report(ctx context.Context, tx *sqldb.Tx, h Held, progress *int64, preview string) (ok bool, err error) {
	return setProgress(ctx, tx, h, progress, preview)
}

// Leave keeps a note of the engine that works on a run. ok is false where the
// run is no longer the attempt's.
func Leave(ctx context.Context, tx *sqldb.Tx, h Held, note string) (ok bool, err error) {
	return setNote(ctx, tx, h, note)
}

// Leftover is a note of a run that ended otherwise than well: what it names may
// still go on.
type Leftover struct{ RunID, Note string }

// Leftovers gives some of an engine's.
func Leftovers(ctx context.Context, tx *sqldb.Tx, engine string, limit int) ([]Leftover, error) {
	return leftovers(ctx, tx, engine, limit)
}

// Abandoned says that nothing goes on any more of what a leftover names.
func Abandoned(ctx context.Context, tx *sqldb.Tx, l Leftover) error { return clearNote(ctx, tx, l) }

// Why a run goes back to the queue.
const (
	Lost     = "lost"     // its worker gave no more sign of life
	Returned = "returned" // its worker had to stop
)

// Requeue lets another worker have the run, unless it is no longer the
// attempt's or was cancelled.
func Requeue(ctx context.Context, tx *sqldb.Tx, h Held, why string) (ok bool, err error) {
	r, ok, err := requeue(ctx, tx, h)
	if err != nil || !ok {
		return false, err
	}
	if err := endAttempt(ctx, tx, h.ID, h.Attempt, why); err != nil {
		return false, err
	}
	return true, waits(ctx, tx, r.Engine, r.PersonID, 1)
}

// RequeueLost lets other workers have the runs that Expired has locked. The
// turns come after all runs, each once and in one order.
func RequeueLost(ctx context.Context, tx *sqldb.Tx, lost []Run) error {
	type turn struct{ engine, personID string }
	turns := map[turn]int64{}
	for _, one := range lost {
		r, ok, err := requeue(ctx, tx, Held{ID: one.ID, Attempt: one.Attempt})
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := endAttempt(ctx, tx, r.ID, r.Attempt, Lost); err != nil {
			return err
		}
		turns[turn{r.Engine, r.PersonID}]++
	}

	ordered := slices.SortedFunc(maps.Keys(turns), func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.personID, b.personID))
	})
	for _, t := range ordered {
		if err := waits(ctx, tx, t.engine, t.personID, turns[t]); err != nil {
			return err
		}
	}
	return nil
}

// Survive says that the worker of an attempt lives although its lease has ended,
// as after a pause or a long time without the database: the run was handed back
// and not lost with it. The run itself stays with whoever has it now.
func Survive(ctx context.Context, tx *sqldb.Tx, h Held) error {
	if ok, err := Requeue(ctx, tx, h, Returned); err != nil || ok {
		return err
	}
	return setOutcome(ctx, tx, h, Lost, Returned)
}

// Expired gives runs whose worker let its lease end, and locks them.
func Expired(ctx context.Context, tx *sqldb.Tx, limit int) ([]Run, error) {
	return expired(ctx, tx, limit)
}

// Claimed gives runs that a worker has, whether it lives or not.
func Claimed(ctx context.Context, tx *sqldb.Tx, limit int) ([]Run, error) {
	return claimed(ctx, tx, limit)
}

// Losses counts the workers that died with a run. One that handed it back, or
// turned out to live, does not count.
func Losses(ctx context.Context, tx *sqldb.Tx, id string) (int64, error) { return losses(ctx, tx, id) }

// WaitingSince gives runs that have waited since before a time.
func WaitingSince(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) ([]Run, error) {
	return waitingSince(ctx, tx, before, limit)
}

// WaitingTools gives the hashes of the tools whose runs wait for an engine.
func WaitingTools(ctx context.Context, tx *sqldb.Tx, engine string) ([]string, error) {
	return waitingTools(ctx, tx, engine)
}

// Late gives runs of a tool that wait for an engine again since they were
// started before a time, or that were created before another and never started.
func Late(ctx context.Context, tx *sqldb.Tx, engine, toolHash string, started, created time.Time, limit int) ([]Run, error) {
	return late(ctx, tx, engine, toolHash, started, created, limit)
}

// awayLasts is how long it counts what a worker found about an engine's server.
const awayLasts = time.Minute

// SetAway says that a worker finds an engine's server away. It has to be said
// again before a minute is over.
func SetAway(ctx context.Context, tx *sqldb.Tx, engine, worker string) error {
	return setAway(ctx, tx, engine, worker, tx.Now.Add(-awayLasts))
}

// SetBack says that the worker reaches it. As long as others do not, that has to
// be said again, too.
func SetBack(ctx context.Context, tx *sqldb.Tx, engine, worker string) error {
	return setBack(ctx, tx, engine, worker, tx.Now.Add(-awayLasts))
}

// SpokenOf tells whether any worker said something about an engine's server.
func SpokenOf(ctx context.Context, tx *sqldb.Tx, engine string) (bool, error) {
	return spokenOf(ctx, tx, engine)
}

// Away gives the engines whose server is away and reached by nobody, and since
// when.
func Away(ctx context.Context, tx *sqldb.Tx) (map[string]time.Time, error) {
	return away(ctx, tx, tx.Now.Add(-awayLasts))
}

// Serve says that a worker has engines of these names.
func Serve(ctx context.Context, tx *sqldb.Tx, engines []string) error {
	for _, name := range slices.Sorted(slices.Values(engines)) {
		if err := serve(ctx, tx, name); err != nil {
			return err
		}
	}
	return nil
}

// Unserved gives the engines for which runs wait and which nobody has had since a
// time, or ever for the zero one. Whoever takes a run has its engine.
func Unserved(ctx context.Context, tx *sqldb.Tx, since time.Time) ([]string, error) {
	last, err := awaited(ctx, tx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(last, func(_ string, seen time.Time) bool {
		return !seen.IsZero() && !seen.Before(since)
	})
	return slices.Sorted(maps.Keys(last)), nil
}

// QueuedFor gives runs that wait for an engine.
func QueuedFor(ctx context.Context, tx *sqldb.Tx, engine string, limit int) ([]Run, error) {
	return queuedFor(ctx, tx, engine, limit)
}

// End ends a run in the state in which r shows it, unless that has changed or
// its attempt is over: then ok is false and nothing changed. It gives the run
// as it is then. The settlement comes after: whoever holds an account's row
// waits for no run.
func End(ctx context.Context, tx *sqldb.Tx, r Run, o Outcome) (ended Run, ok bool, err error) {
	if !slices.Contains(next[r.State], o.State) {
		return Run{}, false, nil
	}
	if ended, ok, err = end(ctx, tx, r, o); err != nil || !ok {
		return Run{}, false, err
	}
	if err := forgetPolls(ctx, tx, r.ID); err != nil { // whose row is locked before the turn
		return Run{}, false, err
	}
	if r.State == Running {
		err = endAttempt(ctx, tx, r.ID, r.Attempt, string(o.State))
	} else {
		err = leaves(ctx, tx, r.Engine, r.PersonID)
	}
	if err != nil {
		return Run{}, false, err
	}
	for i, one := range o.Results {
		if err := insertResult(ctx, tx, r, i, one); err != nil {
			return Run{}, false, err
		}
	}
	return ended, true, nil
}
