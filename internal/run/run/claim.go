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

// Enqueue increments the number of queued runs of a person for an engine.
// headStart is the head start of the new run. A create request calls Enqueue
// before it locks the account in the ledger (see the order of locks in the
// package comment), and then calls Add in the same transaction.
func Enqueue(ctx context.Context, tx *sqldb.Tx, engine, personID string, headStart time.Duration) error {
	if engine == FlowEngine {
		return nil
	}
	return addWaiting(ctx, tx, engine, personID, 1, headStart)
}

// EnqueueAll is like Enqueue for several new runs of one person.
func EnqueueAll(ctx context.Context, tx *sqldb.Tx, runs []Run) error {
	var w waitingRuns
	for _, r := range runs {
		if !r.IsFlow() {
			w.add(r)
		}
	}
	return w.store(ctx, tx)
}

// initialState returns the state of a new run. A flow waits for no worker.
func (r Run) initialState() State {
	if r.IsFlow() {
		return Running
	}
	return Queued
}

// Add stores a new run with its inputs, in its initial state. Enqueue must be
// called before Add. The state, attempt and times of r are ignored.
func Add(ctx context.Context, tx *sqldb.Tx, r Run, inputs []Input) error {
	if err := insertRun(ctx, tx, r); err != nil {
		return err
	}
	if r.IsFlow() {
		if err := addFlow(ctx, tx, r.ID, r.RetryOf); err != nil {
			return err
		}
	}
	for _, in := range inputs {
		if err := insertInput(ctx, tx, r.ID, in); err != nil {
			return err
		}
	}
	return nil
}

// ClaimOptions are the parameters of Claim.
type ClaimOptions struct {
	Engine string
	Worker string
	Lease  time.Duration
	// Limit is the maximum number of runs of the engine that all workers
	// together may execute at the same time; 0 if there is none. A run counts
	// until it ends or is queued again, also if its lease has expired.
	Limit int
}

// Claim assigns the next queued run of an engine to a worker until the lease
// expires, and returns the run and its inputs. ok is false if no run can be
// claimed now.
func Claim(ctx context.Context, tx *sqldb.Tx, o ClaimOptions) (r Run, inputs []Input, ok bool, err error) {
	none := func(err error) (Run, []Input, bool, error) {
		if errors.Is(err, sqldb.ErrNoRows) {
			err = nil
		}
		return Run{}, nil, false, err
	}
	if o.Limit > 0 {
		if free, err := lockFreePlace(ctx, tx, o.Engine, o.Limit); err != nil || !free {
			return none(err)
		}
	}
	personID, err := nextPerson(ctx, tx, o.Engine)
	if err != nil {
		return none(err)
	}
	id, err := nextQueued(ctx, tx, o.Engine, personID)
	if err != nil {
		return none(err)
	}
	if r, err = claimRun(ctx, tx, id, o.Worker, tx.Now.Add(o.Lease)); err != nil {
		return none(err)
	}
	inputs, err = ListInputs(ctx, tx, r.ID)
	return r, inputs, err == nil, err
}

// lockFreePlace reports whether a run of an engine is queued and fewer runs than
// limit are running. Until the transaction ends, no other transaction can claim
// a run of the engine with a limit. An engine without queued runs is not locked,
// because every worker looks for runs once a second.
func lockFreePlace(ctx context.Context, tx *sqldb.Tx, engine string, limit int) (free bool, err error) {
	if waiting, err := hasWaiting(ctx, tx, engine); err != nil || !waiting {
		return false, err
	}
	if err := lockEngine(ctx, tx, engine); err != nil {
		return false, err
	}
	running, err := countRunning(ctx, tx, engine, limit)
	return running < limit, err
}

// RenewLeases extends the leases of a worker on the runs with the given ids. It
// returns the leases that the worker still has; all other runs have ended or
// were taken over. The worker passes only runs that it works on. Leases on
// other runs that it has claimed are not extended, so that another worker can
// claim these runs.
func RenewLeases(ctx context.Context, tx *sqldb.Tx, worker string, ids []string, lease time.Duration) ([]Lease, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return renewLeases(ctx, tx, worker, ids, tx.Now.Add(lease))
}

// Outcomes of attempts after which the run is queued again.
const (
	Lost     = "lost"     // the lease of the worker expired
	Returned = "returned" // the worker had to stop, or found the engine unavailable
)

// Requeue puts a run back into the queue and records the outcome of the
// attempt. ok is false, and nothing changes, if the lease is no longer valid or
// cancellation of the run was requested.
func Requeue(ctx context.Context, tx *sqldb.Tx, h Lease, outcome string) (ok bool, err error) {
	r, ok, err := requeueRun(ctx, tx, h)
	if err != nil || !ok {
		return false, err
	}
	if err := endAttempt(ctx, tx, h.ID, h.Attempt, outcome); err != nil {
		return false, err
	}
	return true, addWaiting(ctx, tx, r.Engine, r.PersonID, 1, r.HeadStart)
}

// RequeueLost puts runs that LockExpired has locked back into the queue. The
// scheduling rows are written after all runs, each only once and in a fixed
// order, to prevent deadlocks.
func RequeueLost(ctx context.Context, tx *sqldb.Tx, lost []Run) error {
	var w waitingRuns
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
		w.add(r)
	}
	return w.store(ctx, tx)
}

// schedulingKey identifies a row of run_turn.
type schedulingKey struct{ engine, personID string }

// waitingRuns counts runs that are queued in one transaction.
type waitingRuns struct {
	counts     map[schedulingKey]int64
	headStarts map[schedulingKey]time.Duration // the longest of each row
}

func (w *waitingRuns) add(r Run) {
	if w.counts == nil {
		w.counts = map[schedulingKey]int64{}
		w.headStarts = map[schedulingKey]time.Duration{}
	}
	key := schedulingKey{r.Engine, r.PersonID}
	w.counts[key]++
	if w.counts[key] == 1 || r.HeadStart > w.headStarts[key] {
		w.headStarts[key] = r.HeadStart
	}
}

// store writes each scheduling row only once, in a fixed order.
func (w *waitingRuns) store(ctx context.Context, tx *sqldb.Tx) error {
	ordered := slices.SortedFunc(maps.Keys(w.counts), func(a, b schedulingKey) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.personID, b.personID))
	})
	for _, key := range ordered {
		if err := addWaiting(ctx, tx, key.engine, key.personID, w.counts[key], w.headStarts[key]); err != nil {
			return err
		}
	}
	return nil
}

// MarkReturned records that the worker of an attempt is alive although its
// lease has expired, for example after the process was suspended or the
// database was unreachable. The attempt then counts as returned instead of
// lost. If another worker has claimed the run in the meantime, that worker
// keeps it.
func MarkReturned(ctx context.Context, tx *sqldb.Tx, h Lease) error {
	if ok, err := Requeue(ctx, tx, h, Returned); err != nil || ok {
		return err
	}
	return changeOutcome(ctx, tx, h, Lost, Returned)
}
