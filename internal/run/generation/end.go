package generation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/asset"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/money/ledger"
	"atelier/internal/money/report"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/person"
	"atelier/internal/run/run"
)

// Outcome describes how a run ended, and contains its results.
type Outcome struct {
	State     run.State
	ErrorCode string         // set for failed runs
	ErrorText string         // message for people; set for failed runs
	Results   []StoredResult // set for succeeded runs of tools
	Delivered []run.FlowStep // runs whose results are those of a succeeded flow
	Dropped   []string       // runs whose intermediate results a succeeded flow deletes
	Took      time.Duration  // duration of the successful attempt
}

// StoredResult is a result whose file is stored.
type StoredResult struct {
	ingest.StoredFile
	Note string // remark of the tool for people, or ""
}

// ErrNotHeld is returned to a worker whose claim on the run is no longer valid.
var ErrNotHeld = errors.New("the run has ended, or another worker has claimed it")

// EndRun ends a run in one transaction. It stores the state and the results,
// adds the run to the report of its company, settles the price, checks the
// budget of the team, queues the webhook event, and records the duration for
// the tool. It returns ErrNotHeld if the state or attempt of the run differs
// from r, and StorageQuotaExceeded if the results do not fit into the account's
// storage. In both cases nothing has changed.
//
// The rows of the files are inserted before the state is changed. If the worker
// does not know whether a first call succeeded and calls EndRun again, the
// second call fails because these rows exist, and does not return ErrNotHeld.
// This matters because a worker deletes the files after ErrNotHeld.
func (s *Service) EndRun(ctx context.Context, r run.Run, e Outcome) error {
	if n := int64(len(e.Results)); n > r.NumResults || (e.State == run.Succeeded) != (n > 0) {
		return fmt.Errorf("end run %s: the state %s does not allow %d results (at most %d were requested)", r.ID, e.State, n, r.NumResults)
	}
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error { return s.endInTx(ctx, tx, r, e) })
	if err == nil {
		failpoint.Hit("settle.after_commit")
	}
	return err
}

func (s *Service) endInTx(ctx context.Context, tx *sqldb.Tx, r run.Run, e Outcome) error {
	if r.State == run.Queued { // ending a queued run changes the person's queue, so it needs the same lock as create requests
		if err := person.Lock(ctx, tx, r.PersonID); err != nil {
			return err
		}
	}
	o := run.Outcome{State: e.State, ErrorCode: e.ErrorCode, ErrorText: e.ErrorText, Delivered: e.Delivered}
	charge := int64(len(e.Results)) * r.UnitTokens
	hold, err := holdOf(ctx, tx, r)
	if err != nil {
		return err
	}
	o.AllowanceUsed = min(charge, hold.Allowance)
	o.TokensCharged = charge - o.AllowanceUsed
	stored := int64(0)
	for _, taken := range e.Results {
		a := taken.Asset
		stored += a.StoredBytes()
		a.AccountID = r.AccountID
		a.Created = tx.Now
		if err := asset.Insert(ctx, tx, a); err != nil {
			return err
		}
		o.Results = append(o.Results, run.Result{
			ID:         uuid.NewString(),
			AssetID:    a.ID,
			Type:       a.Type,
			Note:       taken.Note,
			Shape:      library.AspectRatio(a.Width, a.Height),
			Resolution: library.Resolution(a.Width, a.Height),
			SearchText: library.SearchText(r.Prompt),
		})
	}
	ended, ok, err := run.End(ctx, tx, r, o)
	if err != nil {
		return err
	}
	if !ok {
		return ErrNotHeld
	}
	if ended.CompanyID != "" {
		if err := report.Add(ctx, tx, reportOf(ended, len(o.Results))); err != nil {
			return fmt.Errorf("add run %s to the report: %w", r.ID, err)
		}
	}
	if o.TokensCharged > 0 && r.TeamID != "" { // precedes the settlement, because the settlement locks a row that all settlements share
		if err := s.Budgets.CheckThresholds(ctx, tx, r.TeamID); err != nil {
			return err
		}
	}
	if err := s.Settings.Storage.ChargeAccount(ctx, tx, r.AccountID, stored); err != nil {
		return err
	}
	if err := library.DropIntermediate(ctx, tx, e.Dropped); err != nil {
		return err
	}
	tokens, allowance, err := ledger.Settle(ctx, tx, r.AccountID, r.ID, hold, charge)
	if err != nil {
		return err
	}
	if tokens != o.TokensCharged || allowance != o.AllowanceUsed {
		return fmt.Errorf("settle run %s: charged %d tokens and %d of the allowance, want %d and %d", r.ID, tokens, allowance, o.TokensCharged, o.AllowanceUsed)
	}
	if e.State == run.Succeeded {
		if err := catalog.RecordDuration(ctx, tx, r.ToolID, e.Took/time.Duration(max(len(e.Results), 1))); err != nil {
			return err
		}
	}
	if r.WebhookURL != "" {
		if err := webhook.Add(ctx, tx, webhook.Event{RunID: r.ID, AccountID: r.AccountID, URL: r.WebhookURL}); err != nil {
			return err
		}
		tx.AfterCommit(s.Ended)
	}
	if err := s.Settings.Storage.ChargeTotal(ctx, tx, r.AccountID, stored); err != nil {
		return err
	}
	tx.AfterCommit(func() { s.noticeChange(r) })
	failpoint.Hit("settle.before_commit")
	return nil
}

// holdOf returns what a run still holds. The steps of a flow have taken their
// parts of its hold.
func holdOf(ctx context.Context, tx *sqldb.Tx, r run.Run) (ledger.Hold, error) {
	h := ledger.Hold{Tokens: r.TokensHeld, Allowance: r.AllowanceHeld, Month: r.AllowanceMonth}
	if !r.IsFlow() {
		return h, nil
	}
	var err error
	h.Tokens, h.Allowance, err = run.FlowHold(ctx, tx, r)
	if h.Allowance == 0 { // the steps have taken all of it
		h.Month = ""
	}
	return h, err
}

// reportOf converts an ended run to the type that package report counts.
func reportOf(r run.Run, results int) report.EndedRun {
	e := report.EndedRun{
		CompanyID:     r.CompanyID,
		TeamID:        r.TeamID,
		PersonID:      r.PersonID,
		ToolID:        r.ToolID,
		Plugin:        r.Plugin,
		Credential:    r.Credential,
		CredentialID:  r.CredentialID,
		Status:        r.State.PublicStatus(),
		Results:       int64(results),
		TokensCharged: r.TokensCharged,
		AllowanceUsed: r.AllowanceUsed,
		Started:       r.Started,
		Finished:      r.Finished,
	}
	if r.IsFlow() && r.ParentID == "" {
		e.Flow = &report.FlowTotals{
			Results:       r.Totals.Results,
			TokensCharged: r.Totals.TokensCharged,
			AllowanceUsed: r.Totals.AllowanceUsed,
			Started:       r.Totals.Started,
		}
	}
	return e
}
