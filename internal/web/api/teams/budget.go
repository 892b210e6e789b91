package teams

import (
	"net/http"

	"atelier/internal/money/budget"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// getBudget serves GET /api/v2/teams/{team_id}/budget: it returns the budget
// of a team.
func (h *Handler) getBudget(w http.ResponseWriter, r *http.Request) error {
	b, err := h.Companies.Budgets.GetBudget(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asBudget(b))
}

// setBudget serves PUT /api/v2/teams/{team_id}/budget: it sets the budget of a
// team.
func (h *Handler) setBudget(w http.ResponseWriter, r *http.Request) error {
	req, err := rest.Decode[wire.BudgetDraft](w, r, h.JSON)
	if err != nil {
		return err
	}
	d := budget.Draft{
		Tokens:     req.Tokens,
		Hard:       rest.ValueOrZero(req.Hard),
		WebhookURL: rest.ValueOrZero(req.WebhookURL),
	}
	b, err := h.Companies.Budgets.SetBudget(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id"), d)
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, asBudget(b))
}

// deleteBudget serves DELETE /api/v2/teams/{team_id}/budget: it deletes the
// budget of a team.
func (h *Handler) deleteBudget(w http.ResponseWriter, r *http.Request) error {
	if err := h.Companies.Budgets.RemoveBudget(r.Context(), rest.PrincipalOf(r), r.PathValue("team_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}
