package generation

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// Record is a run with everything that its people are told about it.
type Record struct {
	run.Run
	Outputs  []run.Output
	Webhook  *webhook.State // nil: none was asked for, or the run has not ended
	Position int64          // in the queue, 0 where it does not wait
	// RetryAfter is how long to wait before asking again. While nobody is there
	// to make the result it is longer than what the run itself allows.
	RetryAfter time.Duration
}

// Status gives a run of an account.
func (s *Service) Status(ctx context.Context, accountID, id string) (Record, error) {
	r, err := run.Look(ctx, s.DB, accountID, id)
	if err != nil {
		return Record{}, err
	}
	return s.complete(ctx, r)
}

// StatusOf gives a run of whatever account, for the event that tells of it.
func (s *Service) StatusOf(ctx context.Context, id string) (rec Record, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		r, err := run.Any(ctx, tx, id)
		if err != nil {
			return err
		}
		all, err := s.records(ctx, tx, []run.Run{r})
		if err == nil {
			rec = all[0]
		}
		return err
	})
	return rec, err
}

// complete adds what stands in other rows, where there can be any.
func (s *Service) complete(ctx context.Context, r run.Run) (rec Record, err error) {
	if r.State == run.Running || r.State.Ended() && r.State != run.Succeeded && r.WebhookURL == "" {
		return Record{Run: r, RetryAfter: s.retryAfter(r)}, nil
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err := s.records(ctx, tx, []run.Run{r})
		if err == nil {
			rec = all[0]
		}
		return err
	})
	return rec, err
}

func (s *Service) retryAfter(r run.Run) time.Duration {
	if !r.State.Ended() && s.isAway(r.Engine) {
		return max(r.PollAfter, s.Settings.PollMax)
	}
	return r.PollAfter
}

func (s *Service) records(ctx context.Context, tx *sqldb.Tx, runs []run.Run) ([]Record, error) {
	all := make([]Record, len(runs))
	var succeeded []string
	for i, r := range runs {
		all[i].Run = r
		all[i].RetryAfter = s.retryAfter(r)
		var err error
		switch {
		case r.State == run.Queued:
			all[i].Position, err = run.Position(ctx, tx, r)
		case r.State == run.Succeeded:
			succeeded = append(succeeded, r.ID)
		}
		if err == nil && r.State.Ended() && r.WebhookURL != "" {
			all[i].Webhook, err = webhook.StateOf(ctx, tx, r.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	outputs, err := run.Outputs(ctx, tx, succeeded...)
	for i := range all {
		all[i].Outputs = outputs[all[i].ID]
	}
	return all, err
}

// Poll is Status for somebody who waits. Asking sooner than the credential was
// told to counts as a create while there is room for one. Beyond that a run's
// first early poll is answered all the same, for clients that ask once right
// after the create and give the run up at an error; others are refused. Nor does
// that first one take the room of a create that is arriving.
func (s *Service) Poll(ctx context.Context, who principal.Principal, id string) (Record, error) {
	rec, err := s.Status(ctx, who.AccountID, id)
	if err != nil || rec.State.Ended() {
		return rec, err
	}
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		early, err := run.Answer(ctx, tx, rec.Run, run.Poller{
			PersonID:     who.PersonID,
			Credential:   string(who.Credential.Kind),
			CredentialID: who.Credential.ID,
		})
		if err != nil || early == 0 {
			return err
		}

		unit, full, err := ratelimit.Take(ctx, tx, rateKey(who.PersonID), s.windows...)
		switch {
		case err != nil:
			return err
		case early == 1:
			return s.leaveRoom(ctx, tx, who.PersonID, unit)
		case full.Wait > 0:
			return full.Fault("You ask for this run more often than it tells you to. Wait a little.")
		}
		return nil
	})
	return rec, err
}

// leaveRoom gives back what a first early poll took, if it took anything, where
// creates that are arriving need it.
func (s *Service) leaveRoom(ctx context.Context, tx *sqldb.Tx, personID, unit string) error {
	arriving := s.arriving.Count(personID)
	if arriving == 0 || unit == "" {
		return nil
	}
	left, _, err := ratelimit.Left(ctx, tx, rateKey(personID), s.windows...)
	if err != nil || left >= arriving {
		return err
	}
	return ratelimit.Return(ctx, tx, unit)
}

// List gives an account's runs, newest first.
func (s *Service) List(ctx context.Context, accountID string, f run.Filter, after *run.Place, limit int) (all []Record, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		runs, err := run.List(ctx, tx, accountID, f, after, limit)
		if err != nil {
			return err
		}
		all, err = s.records(ctx, tx, runs)
		return err
	})
	return all, err
}

// Cancel ends a run, or asks whoever works on it to. was is whether it had
// ended before.
func (s *Service) Cancel(ctx context.Context, who principal.Principal, id string) (rec Record, was bool, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		r, err := run.ByID(ctx, tx, who.AccountID, id)
		if err != nil {
			return err
		}
		if r.PersonID != who.PersonID && !who.May(company.ManageTeam) {
			return fault.New(fault.Forbidden, "Only whoever started a run, or a manager of the team, can cancel it.").With("reason", "permission")
		}
		err = person.Lock(ctx, tx, r.PersonID) // always before the run
		if errors.Is(err, person.ErrDeleted) { // whose runs have all ended
			was = true
			return nil
		}
		if err != nil {
			return err
		}
		r, ok, err := run.AskCancel(ctx, tx, who.AccountID, id)
		was = !ok
		if err != nil || was {
			return err
		}
		if r.State == run.Queued {
			return s.end(ctx, tx, r, Ending{State: run.Cancelled})
		}
		tx.AfterCommit(func() { s.Hub.Tell(r.ID) })
		return nil
	})
	if err != nil {
		return Record{}, false, err
	}
	rec, err = s.Status(ctx, who.AccountID, id)
	return rec, was, err
}
