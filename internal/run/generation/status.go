package generation

import (
	"context"
	"time"

	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// Record is a run with its results, the state of its webhook event and its
// position in the queue.
type Record struct {
	run.Run
	ToolName string // the current name of the tool, or "" if the tool is unknown
	Outputs  []run.Output
	Steps    []StepRecord   // runs of the steps of a flow
	Webhook  *webhook.State // nil if no webhook was requested or the run has not ended
	Position int64          // position in this service's queue, from 1; 0 if the run is not in it
	// RetryAfter is how long a client should wait before the next poll. While
	// the engine is unavailable, or the run waits in the queue of its model
	// server, it may be longer than PollAfter of the run.
	RetryAfter time.Duration
	// PreviewRun is the run whose preview is shown: the run itself, or a step of
	// a flow.
	PreviewRun string
}

// Stage returns the stage of the run as the API shows it. A flow is queued until
// its first step has started.
func (rec Record) Stage() run.State {
	if rec.IsFlow() && !rec.State.IsEnded() && rec.Started.IsZero() {
		return run.Queued
	}
	return rec.Run.Stage()
}

// GetStatus returns a run of an account. It returns run.ErrNotFound for runs of
// other accounts.
func (s *Service) GetStatus(ctx context.Context, accountID, id string) (Record, error) {
	r, err := run.Get(ctx, s.DB, accountID, id)
	if err != nil {
		return Record{}, err
	}
	return s.completeRecord(ctx, r)
}

// GetStatusUnscoped returns a run of any account, for its webhook event. It
// does not check who may see the run.
func (s *Service) GetStatusUnscoped(ctx context.Context, id string) (rec Record, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		r, err := run.GetUnscoped(ctx, tx, id)
		if err != nil {
			return err
		}
		all, err := s.RecordsOf(ctx, tx, []run.Run{r})
		if err == nil {
			rec = all[0]
		}
		return err
	})
	return rec, err
}

// completeRecord adds the data from other tables to a run. It does not access
// the database if the run cannot have such data.
func (s *Service) completeRecord(ctx context.Context, r run.Run) (rec Record, err error) {
	isAlone := r.State == run.Running || r.State.IsEnded() && r.State != run.Succeeded && r.WebhookURL == ""
	if isAlone && !r.IsFlow() {
		return s.newRecord(r), nil
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err := s.RecordsOf(ctx, tx, []run.Run{r})
		if err == nil {
			rec = all[0]
		}
		return err
	})
	return rec, err
}

// newRecord returns the record of a run without the data from other tables.
func (s *Service) newRecord(r run.Run) Record {
	return Record{
		Run:        r,
		PreviewRun: r.ID,
		ToolName:   s.Catalog.CurrentSnapshot().ToolName(r.ToolID),
		RetryAfter: s.pacing.retryAfter(r),
	}
}

// RecordsOf adds the data from other tables to runs. It does not check who may
// see the runs. It sends at most one statement for each kind of data, however
// many runs there are.
func (s *Service) RecordsOf(ctx context.Context, tx *sqldb.Tx, runs []run.Run) ([]Record, error) {
	all := make([]Record, len(runs))
	var queued, notified []string
	for i, r := range runs {
		all[i] = s.newRecord(r)
		if r.State == run.Queued {
			queued = append(queued, r.ID)
		}
		if r.State.IsEnded() && r.WebhookURL != "" {
			notified = append(notified, r.ID)
		}
	}
	positions, err := run.Positions(ctx, tx, queued...)
	if err != nil {
		return nil, err
	}
	states, err := webhook.States(ctx, tx, notified...)
	if err != nil {
		return nil, err
	}
	outputs, err := outputsOf(ctx, tx, runs)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Position = positions[all[i].ID]
		all[i].Webhook = states[all[i].ID]
		all[i].Outputs = outputs[all[i].ID]
	}
	return all, s.addSteps(ctx, tx, all)
}

// PollRun is like GetStatus, for a client that waits for a run to end. A poll
// that comes sooner than the run's PollAfter counts against the rate limit for
// creating runs. If that limit is exhausted, early polls are rejected. The
// first early poll of a run is still allowed, because some clients poll once
// right after creating the run and stop at an error. The first early poll also
// does not use up the part of the rate limit that is needed by create requests
// whose bodies are still arriving.
func (s *Service) PollRun(ctx context.Context, who principal.Principal, id string) (Record, error) {
	rec, err := s.GetStatus(ctx, who.AccountID, id)
	if err != nil || rec.State.IsEnded() {
		return rec, err
	}
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		early, err := run.RecordPoll(ctx, tx, rec.Run, who.PersonID, string(who.Credential.Kind), who.Credential.ID)
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
			full.Wait = min(full.Wait, rec.PollAfter) // a poll on time needs nothing of the limit
			return full.Fault("You poll this run more often than its retry_after_seconds allows. Wait and try again.")
		}
		return nil
	})
	return rec, err
}

// leaveRoom removes a first early poll from the count of the rate limit if the
// limit would otherwise not suffice for the create requests whose bodies are
// still arriving. unit identifies the counted poll.
func (s *Service) leaveRoom(ctx context.Context, tx *sqldb.Tx, personID, unit string) error {
	arriving := s.arriving.Count(personID)
	if arriving == 0 || unit == "" {
		return nil
	}
	left, _, err := ratelimit.Left(ctx, tx, rateKey(personID), s.windows...)
	if err != nil || left >= arriving {
		return err
	}
	return ratelimit.ReturnEvent(ctx, tx, unit)
}

// ListRuns returns at most limit runs of an account, newest first, starting
// after the cursor.
func (s *Service) ListRuns(ctx context.Context, accountID string, f run.Filter, after *run.Cursor, limit int) (all []Record, err error) {
	if f.HasIndexOrder() {
		ctx = sqldb.WithIndexOrder(ctx)
	}
	err = sqldb.ReadList(ctx, s.DB, after == nil, func(tx *sqldb.Tx) error {
		runs, err := run.List(ctx, tx, accountID, f, after, limit)
		if err != nil {
			return err
		}
		all, err = s.RecordsOf(ctx, tx, runs)
		return err
	})
	return all, err
}
