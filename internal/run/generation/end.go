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

// Ending is how a run ended.
type Ending struct {
	State     run.State
	ErrorCode string // of failed runs
	ErrorText string
	Results   []Made        // of succeeded ones
	Took      time.Duration // of the attempt that succeeded
}

// Made is a result that lies in the store.
type Made struct {
	ingest.Taken
	Note string // for whoever sees it, "" for none
}

// ErrOver is for a worker whose run is no longer its own.
var ErrOver = errors.New("the run is over, or somebody else's")

// End ends a run in one transaction: its state, its results, what its company
// used, what it costs, what its team's budget reaches, its event and the tool's
// history. Where r is not as the run is by now, it is ErrOver and nothing changed;
// where its results do not fit into the account, it is StorageQuotaExceeded and
// nothing changed either.
//
// Files come before the state: where the outcome of a first try is unknown, a
// second one fails on them and not with ErrOver, whose files may be dropped.
func (s *Service) End(ctx context.Context, r run.Run, e Ending) error {
	if n := int64(len(e.Results)); n > r.NumResults || (e.State == run.Succeeded) != (n > 0) {
		return fmt.Errorf("end run %s: %s with %d results of %d", r.ID, e.State, n, r.NumResults)
	}
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error { return s.endInTx(ctx, tx, r, e) })
	if err == nil {
		failpoint.Hit("settle.after_commit")
	}
	return err
}

func (s *Service) endInTx(ctx context.Context, tx *sqldb.Tx, r run.Run, e Ending) error {
	if r.State == run.Queued { // it leaves the person's queue, where creates count too
		if err := person.Lock(ctx, tx, r.PersonID); err != nil {
			return err
		}
	}
	o := run.Outcome{State: e.State, ErrorCode: e.ErrorCode, ErrorText: e.ErrorText}
	charge := int64(len(e.Results)) * r.UnitTokens
	hold := ledger.Hold{Tokens: r.TokensHeld, Allowance: r.AllowanceHeld, Month: r.AllowanceMonth}
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
			Shape:      library.Shape(a.Width, a.Height),
			Resolution: library.Resolution(a.Width, a.Height),
		})
	}
	ended, ok, err := run.End(ctx, tx, r, o)
	if err != nil {
		return err
	}
	if !ok {
		return ErrOver
	}
	if ended.CompanyID != "" {
		if err := report.Add(ctx, tx, reportOf(ended, len(o.Results))); err != nil {
			return fmt.Errorf("report run %s: %w", r.ID, err)
		}
	}
	if o.TokensCharged > 0 && r.TeamID != "" { // before the ledger, whose last row everybody waits for
		if err := s.Budgets.Charged(ctx, tx, r.TeamID); err != nil {
			return err
		}
	}
	if err := s.Settings.Storage.Charge(ctx, tx, r.AccountID, stored); err != nil {
		return err
	}
	tokens, allowance, err := ledger.Settle(ctx, tx, r.AccountID, r.ID, hold, charge)
	if err != nil {
		return err
	}
	if tokens != o.TokensCharged || allowance != o.AllowanceUsed {
		return fmt.Errorf("settle run %s: %d tokens and %d free, want %d and %d", r.ID, tokens, allowance, o.TokensCharged, o.AllowanceUsed)
	}
	if e.State == run.Succeeded {
		if err := catalog.RecordDuration(ctx, tx, r.ToolID, e.Took/time.Duration(len(e.Results))); err != nil {
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
	tx.AfterCommit(func() { s.Hub.Tell(r.ID) })
	failpoint.Hit("settle.before_commit")
	return nil
}

// reportOf is a run that has ended as its company's reports count it.
func reportOf(r run.Run, results int) report.Ended {
	return report.Ended{
		CompanyID:     r.CompanyID,
		TeamID:        r.TeamID,
		PersonID:      r.PersonID,
		ToolID:        r.ToolID,
		Plugin:        r.Plugin,
		Credential:    r.Credential,
		CredentialID:  r.CredentialID,
		Status:        r.State.Status(),
		Results:       int64(results),
		TokensCharged: r.TokensCharged,
		AllowanceUsed: r.AllowanceUsed,
		Started:       r.Started,
		Finished:      r.Finished,
	}
}
