package generation

import (
	"context"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/run"
)

// Cost is the price and the expected duration of a run.
type Cost struct {
	Tokens        int64 // tokens to pay after the free allowance is used
	FreeAllowance int64
	PerResult     int64
	Estimated     time.Duration
	// Blocked is a message that says why the account cannot start the run now.
	// It is "" if the account can start it.
	Blocked string
}

// PriceDraft returns the cost of a draft and whether the account could run it.
// It reserves no tokens and does not count against rate limits.
func (s *Service) PriceDraft(ctx context.Context, d Draft) (Cost, error) {
	a, err := s.validator.checkDraft(ctx, d, true)
	if err != nil {
		return Cost{}, err
	}
	c := Cost{PerResult: a.tool.TokenCost(1), Estimated: a.estimated}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		hold, enough, available, err := ledger.Quote(ctx, tx, d.Principal.AccountID, a.price, s.Settings.MonthlyAllowance)
		if err != nil {
			return err
		}
		c.Tokens = hold.Tokens
		c.FreeAllowance = hold.Allowance
		active, err := run.CountActive(ctx, tx, d.Principal.PersonID)
		if err != nil {
			return err
		}
		left, limited, err := spendLeft(ctx, tx, d.Principal)
		if err != nil {
			return err
		}
		_, full := s.Settings.Storage.CheckAvailable(ctx, tx, d.Principal.AccountID, 1)
		if full != nil && !fault.Is(full, fault.StorageQuotaExceeded) {
			return full
		}
		planned, hard, err := budgetLeft(ctx, tx, d.Principal, hold, tx.Now)
		switch {
		case err != nil:
		case d.Principal.Unverified:
			c.Blocked = principal.ErrUnverified.Message
		case !d.Principal.May(company.Generate):
			c.Blocked = "Your role in this team does not allow running tools."
		case active >= int64(s.Settings.ActiveRuns):
			c.Blocked = errActiveCap(active, s.Settings.ActiveRuns).Message
		case full != nil:
			c.Blocked = "The storage of the account is full. Delete files first."
		case !enough:
			c.Blocked = errTooFewTokens(s.Settings.TopUp, d.Principal, hold.Tokens, available).Message
		case limited && hold.Tokens > left:
			c.Blocked = errOverspent(hold.Tokens, left).Message
		case hard && hold.Tokens > planned:
			c.Blocked = errOverBudget(hold.Tokens, planned).Message
		}
		return err
	})
	return c, err
}
