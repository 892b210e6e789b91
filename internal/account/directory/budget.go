package directory

import (
	"context"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/budget"
	"atelier/internal/people/principal"
)

// Budget gives a team's budget, and how it stands.
func (d *Directory) Budget(ctx context.Context, a principal.Principal, teamID string) (b budget.Budget, err error) {
	err = d.lookTeam(ctx, a, teamID, seesBudget, func(tx *sqldb.Tx, _ place) error {
		b, err = budget.Of(ctx, tx, teamID)
		return err
	})
	return b, err
}

// SetBudget gives a team a budget, or another one.
func (d *Directory) SetBudget(ctx context.Context, a principal.Principal, teamID string, draft budget.Draft) (b budget.Budget, err error) {
	err = d.changeTeam(ctx, a, teamID, paysFor, func(tx *sqldb.Tx, _ place) (audit.Entry, error) {
		was, err := budgetOf(ctx, tx, teamID)
		if err != nil {
			return audit.Entry{}, err
		}
		b, err = d.Budgets.Set(ctx, tx, teamID, draft)
		e := audit.Entry{Act: audit.BudgetSet, Details: map[string]string{
			"team": teamID, "tokens": strconv.FormatInt(draft.Tokens, 10), "hard": strconv.FormatBool(draft.Hard),
		}}
		return e.Changing(describeBudget(was), describeBudget(&draft)), err
	})
	return b, err
}

// RemoveBudget takes a team's budget away.
func (d *Directory) RemoveBudget(ctx context.Context, a principal.Principal, teamID string) error {
	return d.changeTeam(ctx, a, teamID, paysFor, func(tx *sqldb.Tx, _ place) (audit.Entry, error) {
		was, err := budgetOf(ctx, tx, teamID)
		if err != nil {
			return audit.Entry{}, err
		}
		e := audit.Entry{Act: audit.BudgetRemoved, Details: map[string]string{"team": teamID}}
		return e.Changing(describeBudget(was), ""), budget.Remove(ctx, tx, teamID)
	})
}

// budgetOf gives what a team plans, nil where it plans nothing.
func budgetOf(ctx context.Context, tx *sqldb.Tx, teamID string) (*budget.Draft, error) {
	b, err := budget.Of(ctx, tx, teamID)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return &b.Draft, err
}
