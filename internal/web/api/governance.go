package api

import (
	"encoding/json"
	"net/http"

	"atelier/internal/money/budget"
	"atelier/internal/web/access"
	"atelier/internal/web/api/wire"
)

// governanceRoutes are those about budgets and directories.
func (s *Server) governanceRoutes() []route {
	return []route{
		{"GET", prefix + "/teams/{team_id}/budget", access.SignedIn, s.getBudget},
		{"PUT", prefix + "/teams/{team_id}/budget", access.SignedIn, s.setBudget},
		{"DELETE", prefix + "/teams/{team_id}/budget", access.SignedIn, s.deleteBudget},
	}
}

func (s *Server) getBudget(w http.ResponseWriter, r *http.Request) error {
	b, err := s.Directory.Budget(r.Context(), principalOf(r), r.PathValue("team_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asBudget(b))
}

func (s *Server) setBudget(w http.ResponseWriter, r *http.Request) error {
	req, err := decode[wire.BudgetDraft](w, r, s.Limits)
	if err != nil {
		return err
	}
	d := budget.Draft{Tokens: req.Tokens}
	if req.Hard != nil {
		d.Hard = *req.Hard
	}
	if req.WebhookURL != nil {
		d.WebhookURL = *req.WebhookURL
	}
	b, err := s.Directory.SetBudget(r.Context(), principalOf(r), r.PathValue("team_id"), d)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, asBudget(b))
}

func (s *Server) deleteBudget(w http.ResponseWriter, r *http.Request) error {
	if err := s.Directory.RemoveBudget(r.Context(), principalOf(r), r.PathValue("team_id")); err != nil {
		return err
	}
	return done(w)
}

func asBudget(b budget.Budget) wire.Budget {
	out := wire.Budget{
		TeamID:      b.TeamID,
		Tokens:      b.Tokens,
		Hard:        b.Hard,
		Month:       b.Month,
		Spent:       b.Spent,
		Percent:     b.Percent,
		ToldPercent: b.Told,
		Created:     moment(b.Created),
		Updated:     moment(b.Updated),
	}
	if b.WebhookURL != "" {
		out.WebhookURL = &b.WebhookURL
	}
	return out
}

// BudgetEventBody is what a budget's webhook gets of an alert.
func BudgetEventBody(a budget.Alert) ([]byte, error) {
	return json.Marshal(wire.BudgetEvent{Type: "budget.reached", Timestamp: moment(a.At), Data: wire.BudgetAlert{
		CompanyID:        a.CompanyID,
		TeamID:           a.TeamID,
		TeamName:         a.TeamName,
		Month:            a.Month,
		ThresholdPercent: a.Threshold,
		Tokens:           a.Tokens,
		Spent:            a.Spent,
	}})
}
