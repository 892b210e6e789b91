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

// Cost is what a run would cost.
type Cost struct {
	Tokens        int64 // beyond the allowance
	FreeAllowance int64
	PerResult     int64
	Estimated     time.Duration
	// Blocked says why the account could not run it now, "" where it could.
	Blocked string
}

// Price tells what a draft would cost and whether the account could run it. It
// reserves and counts nothing.
func (s *Service) Price(ctx context.Context, d Draft) (Cost, error) {
	a, err := s.check(ctx, d, true)
	if err != nil {
		return Cost{}, err
	}
	c := Cost{PerResult: a.tool.Cost(1), Estimated: estimate(a.tool, a.n)}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		hold, enough, available, err := ledger.Quote(ctx, tx, d.Principal.AccountID, a.price, s.Settings.MonthlyAllowance)
		if err != nil {
			return err
		}
		c.Tokens = hold.Tokens
		c.FreeAllowance = hold.Allowance
		active, err := run.Active(ctx, tx, d.Principal.PersonID)
		if err != nil {
			return err
		}
		left, limited, err := spendLeft(ctx, tx, d.Principal)
		if err != nil {
			return err
		}
		_, full := s.Settings.Storage.Fits(ctx, tx, d.Principal.AccountID, 1)
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
			c.Blocked = activeCap(active, s.Settings.ActiveRuns).Message
		case full != nil:
			c.Blocked = "The account has no room for results. Delete files first."
		case !enough:
			c.Blocked = s.tooFewTokens(d.Principal, hold.Tokens, available).Message
		case limited && hold.Tokens > left:
			c.Blocked = overspent(hold.Tokens, left).Message
		case hard && hold.Tokens > planned:
			c.Blocked = overBudget(hold.Tokens, planned).Message
		}
		return err
	})
	return c, err
}
