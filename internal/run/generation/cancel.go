package generation

import (
	"context"
	"errors"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// CancelRun ends a queued run, or requests that the worker of a running run
// stop. was is true if the run had already ended.
func (s *Service) CancelRun(ctx context.Context, who principal.Principal, id string) (rec Record, was bool, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		r, err := run.Get(ctx, tx, who.AccountID, id)
		if err != nil {
			return err
		}
		if r.PersonID != who.PersonID && !who.May(company.ManageTeam) {
			return fault.New(fault.Forbidden, "Only the person who started a run, or a manager of the team, can cancel it.").With("reason", "permission")
		}
		err = person.Lock(ctx, tx, r.PersonID) // lock order: a person is always locked before runs
		if errors.Is(err, person.ErrDeleted) { // all runs of a deleted person have ended
			was = true
			return nil
		}
		if err != nil {
			return err
		}
		r, ok, err := run.RequestCancel(ctx, tx, who.AccountID, id)
		was = !ok
		if err != nil || was {
			return err
		}
		if r.State == run.Queued {
			return s.endInTx(ctx, tx, r, Outcome{State: run.Cancelled})
		}
		tx.AfterCommit(func() { s.Hub.Notify(r.ID) })
		return nil
	})
	if err != nil {
		return Record{}, false, err
	}
	rec, err = s.GetStatus(ctx, who.AccountID, id)
	return rec, was, err
}
