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
// locks the account in the ledger, see the order of locks in the package comment,
// and calls Add in the same transaction.
func Enqueue(ctx context.Context, tx *sqldb.Tx, engine, personID string) error {
	return addWaiting(ctx, tx, engine, personID, 1)
}

// Add stores a new queued run after Enqueue. The state, attempt and times of r
// are ignored.
func Add(ctx context.Context, tx *sqldb.Tx, r Run, inputs []Input) error {
	if err := insertRun(ctx, tx, r); err != nil {
		return err
	}
	for _, in := range inputs {
		if err := insertInput(ctx, tx, r.ID, in); err != nil {
			return err
		}
	}
	return nil
}

// Claim assigns the next run of an engine to the worker, with its inputs, until
// the lease expires. ok is false if no run can be claimed now.
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
	id, err := oldestQueued(ctx, tx, engine, personID)
	if err != nil {
		return none(err)
	}
	if r, err = claimRun(ctx, tx, id, worker, tx.Now.Add(lease)); err != nil {
		return none(err)
	}
	inputs, err = listInputs(ctx, tx, r.ID)
	return r, inputs, err == nil, err
}

// RenewLeases extends the leases of a worker on the runs that it works on, and
// returns the claims that it still has: other workers have taken over the rest.
// Runs that the worker has claimed but does not work on are not renewed, so that
// another worker claims them.
func RenewLeases(ctx context.Context, tx *sqldb.Tx, worker string, ids []string, lease time.Duration) ([]Lease, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return renewLeases(ctx, tx, worker, ids, tx.Now.Add(lease))
}

// The outcomes of attempts after which a run is queued again.
const (
	Lost     = "lost"     // the lease of the worker expired
	Returned = "returned" // the worker had to stop
)

// Requeue puts a run back into the queue, unless the attempt no longer holds it
// or its cancellation was requested.
func Requeue(ctx context.Context, tx *sqldb.Tx, h Lease, outcome string) (ok bool, err error) {
	r, ok, err := requeueRun(ctx, tx, h)
	if err != nil || !ok {
		return false, err
	}
	if err := endAttempt(ctx, tx, h.ID, h.Attempt, outcome); err != nil {
		return false, err
	}
	return true, addWaiting(ctx, tx, r.Engine, r.PersonID, 1)
}

// RequeueLost puts the runs that LockExpired has locked back into the queue. The
// scheduling rows are written after all runs, each once and in one order.
func RequeueLost(ctx context.Context, tx *sqldb.Tx, lost []Run) error {
	type schedulingKey struct{ engine, personID string }
	waiting := map[schedulingKey]int64{}
	for _, candidate := range lost {
		r, ok, err := requeueRun(ctx, tx, Lease{ID: candidate.ID, Attempt: candidate.Attempt})
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := endAttempt(ctx, tx, r.ID, r.Attempt, Lost); err != nil {
			return err
		}
		waiting[schedulingKey{r.Engine, r.PersonID}]++
	}

	ordered := slices.SortedFunc(maps.Keys(waiting), func(a, b schedulingKey) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.personID, b.personID))
	})
	for _, key := range ordered {
		if err := addWaiting(ctx, tx, key.engine, key.personID, waiting[key]); err != nil {
			return err
		}
	}
	return nil
}

// MarkReturned records that the worker of an attempt lives although its lease has
// expired, as after a pause or a long time without the database: the run was
// returned and not lost with the worker. A run that another worker has claimed
// since stays with that worker.
func MarkReturned(ctx context.Context, tx *sqldb.Tx, h Lease) error {
	if ok, err := Requeue(ctx, tx, h, Returned); err != nil || ok {
		return err
	}
	return changeOutcome(ctx, tx, h, Lost, Returned)
}
