package companyadmin

import (
	"context"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/budget"
	"atelier/internal/people/principal"
)

// Budgets manages the monthly budgets of teams.
type Budgets struct {
	db      auditedDB
	budgets *budget.Service
}

// GetBudget returns a team's budget and how much of it has been spent.
func (s *Budgets) GetBudget(ctx context.Context, caller principal.Principal, teamID string) (b budget.Budget, err error) {
	err = s.db.readTeam(ctx, caller, teamID, requireViewBudget, func(tx *sqldb.Tx, _ teamAccess) error {
		b, err = budget.Of(ctx, tx, teamID)
		return err
	})
	return b, err
}

// SetBudget creates or replaces a team's budget.
func (s *Budgets) SetBudget(ctx context.Context, caller principal.Principal, teamID string, draft budget.Draft) (b budget.Budget, err error) {
	err = s.db.changeTeam(ctx, caller, teamID, requireManageBilling, func(tx *sqldb.Tx, _ teamAccess) (audit.Entry, error) {
		before, err := findBudget(ctx, tx, teamID)
		if err != nil {
			return audit.Entry{}, err
		}

		b, err = s.budgets.Set(ctx, tx, teamID, draft)
		e := audit.Entry{Act: audit.BudgetSet, Details: map[string]string{
			"team": teamID, "tokens": strconv.FormatInt(draft.Tokens, 10), "hard": strconv.FormatBool(draft.Hard),
		}}
		return e.WithChange(describeBudget(before), describeBudget(&draft)), err
	})
	return b, err
}

// RemoveBudget removes a team's budget.
func (s *Budgets) RemoveBudget(ctx context.Context, caller principal.Principal, teamID string) error {
	return s.db.changeTeam(ctx, caller, teamID, requireManageBilling, func(tx *sqldb.Tx, _ teamAccess) (audit.Entry, error) {
		before, err := findBudget(ctx, tx, teamID)
		if err != nil {
			return audit.Entry{}, err
		}

		e := audit.Entry{Act: audit.BudgetRemoved, Details: map[string]string{"team": teamID}}
		return e.WithChange(describeBudget(before), ""), budget.Remove(ctx, tx, teamID)
	})
}

// findBudget returns the settings of a team's budget, or nil if the team has no
// budget.
func findBudget(ctx context.Context, tx *sqldb.Tx, teamID string) (*budget.Draft, error) {
	b, err := budget.Of(ctx, tx, teamID)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return &b.Draft, err
}
