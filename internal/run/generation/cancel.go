package generation

import (
	"context"
	"errors"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// CancelRun ends a queued run, or requests that the worker of a running run
// stop. was is true if the run had already ended. An operator can cancel the
// runs of all accounts; the first such request for a run is audited.
func (s *Service) CancelRun(ctx context.Context, who principal.Principal, id string) (rec Record, was bool, err error) {
	var before run.Run
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if before, err = findCancellable(ctx, tx, who, id); err != nil {
			return err
		}
		err = person.Lock(ctx, tx, before.PersonID) // lock order: a person is always locked before runs
		if errors.Is(err, person.ErrDeleted) {      // all runs of a deleted person have ended
			was = true
			return nil
		}
		if err != nil {
			return err
		}
		r, ok, err := run.RequestCancel(ctx, tx, before.AccountID, id)
		was = !ok
		if err != nil || was {
			return err
		}
		if r.State == run.Queued {
			err = s.endInTx(ctx, tx, r, Outcome{State: run.Cancelled})
		} else {
			tx.AfterCommit(func() { s.noticeChange(r) })
		}
		if err != nil || !who.Operator || before.Cancel {
			return err
		}
		return auditCancel(ctx, tx, who, before)
	})
	if err != nil {
		return Record{}, false, err
	}
	rec, err = s.GetStatus(ctx, before.AccountID, id)
	return rec, was, err
}

// findCancellable returns a run of the principal's account, or of any account
// for an operator. It returns an error if the principal may not cancel the run.
func findCancellable(ctx context.Context, tx *sqldb.Tx, who principal.Principal, id string) (run.Run, error) {
	if who.Operator {
		return run.GetUnscoped(ctx, tx, id)
	}
	r, err := run.Get(ctx, tx, who.AccountID, id)
	if err == nil && r.PersonID != who.PersonID && !who.May(company.ManageTeam) {
		err = fault.New(fault.Forbidden, "Only the person who started a run, or a manager of the team, can cancel it.").With("reason", "permission")
	}
	return r, err
}

// auditCancel records that an operator has cancelled a run.
func auditCancel(ctx context.Context, tx *sqldb.Tx, operator principal.Principal, r run.Run) error {
	return audit.Add(ctx, tx, audit.Entry{
		Act:       audit.RunCancelled,
		ActorID:   operator.PersonID,
		PersonID:  r.PersonID,
		CompanyID: r.CompanyID,
		Address:   operator.Address,
		Details:   map[string]string{"run": r.ID, "account": r.AccountID},
	})
}
