package run

import (
	"context"
	"errors"
	"slices"

	"atelier/internal/base/sqldb"
)

// RequestCancel records that a run of an account should be cancelled. ok is
// false if the run has already ended. The worker of a running run reads the
// request and ends the run. A queued run can be ended by the caller
// immediately. The steps of a flow are cancelled when its next steps are
// decided.
func RequestCancel(ctx context.Context, tx *sqldb.Tx, accountID, id string) (r Run, ok bool, err error) {
	r, err = markCancelled(ctx, tx, accountID, id)
	if err == nil && r.IsFlow() {
		err = wakeFlow(ctx, tx, id)
	}
	if !errors.Is(err, sqldb.ErrNoRows) {
		return r, err == nil, err
	}
	r, err = Get(ctx, tx, accountID, id)
	return r, false, err
}

// End ends a run if it still has the state and the attempt of r, and returns
// the ended run. Otherwise it changes nothing and ok is false. The run must be
// ended before it is settled, because a transaction that has locked an account
// must not wait for a run.
func End(ctx context.Context, tx *sqldb.Tx, r Run, o Outcome) (ended Run, ok bool, err error) {
	if !slices.Contains(next[r.State], o.State) {
		return Run{}, false, nil
	}
	if ended, ok, err = endRun(ctx, tx, r, o); err != nil || !ok {
		return Run{}, false, err
	}
	if r.ParentID != "" {
		if err := wakeFlow(ctx, tx, r.ParentID); err != nil {
			return Run{}, false, err
		}
	}
	if err := deletePolls(ctx, tx, r.ID); err != nil { // lock order: run_poll before run_turn
		return Run{}, false, err
	}

	switch {
	case r.IsFlow():
		ended.Totals, err = endFlowSteps(ctx, tx, r.ID, o.Delivered)
	case r.State == Running:
		err = endAttempt(ctx, tx, r.ID, r.Attempt, string(o.State))
	default:
		err = removeWaiting(ctx, tx, r.Engine, r.PersonID)
	}
	if err != nil {
		return Run{}, false, err
	}

	for i, result := range o.Results {
		if err := insertResult(ctx, tx, r, i, result); err != nil {
			return Run{}, false, err
		}
	}
	return ended, true, nil
}

// endFlowSteps stores which steps of an ended flow made its results, and its
// totals.
func endFlowSteps(ctx context.Context, tx *sqldb.Tx, id string, delivered []FlowStep) (FlowTotals, error) {
	for i, step := range delivered {
		if err := deliverStep(ctx, tx, id, step, int64(i)); err != nil {
			return FlowTotals{}, err
		}
	}
	return endFlow(ctx, tx, id)
}
