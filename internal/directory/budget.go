package directory

import (
	"context"
	"strconv"

	"atelier/internal/audit"
	"atelier/internal/budget"
	"atelier/internal/sqldb"
)

// Budget gives a team's budget, and how it stands.
func (d *Directory) Budget(ctx context.Context, a Actor, teamID string) (b budget.Budget, err error) {
	err = d.lookTeam(ctx, a, teamID, seesBudget, func(tx *sqldb.Tx, _ place) error {
		b, err = budget.Of(ctx, tx, teamID)
		return err
	})
	return b, err
}

// SetBudget gives a team a budget, or another one.
func (d *Directory) SetBudget(ctx context.Context, a Actor, teamID string, draft budget.Draft) (b budget.Budget, err error) {
	err = d.changeTeam(ctx, a, teamID, paysFor, func(tx *sqldb.Tx, _ place) (audit.Entry, error) {
		b, err = d.Budgets.Set(ctx, tx, teamID, draft)
		return audit.Entry{Act: audit.BudgetSet, Details: map[string]string{
			"team": teamID, "tokens": strconv.FormatInt(draft.Tokens, 10), "hard": strconv.FormatBool(draft.Hard),
		}}, err
	})
	return b, err
}

// RemoveBudget takes a team's budget away.
func (d *Directory) RemoveBudget(ctx context.Context, a Actor, teamID string) error {
	return d.changeTeam(ctx, a, teamID, paysFor, func(tx *sqldb.Tx, _ place) (audit.Entry, error) {
		return audit.Entry{Act: audit.BudgetRemoved, Details: map[string]string{"team": teamID}}, budget.Remove(ctx, tx, teamID)
	})
}
