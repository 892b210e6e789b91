package webhooks

import (
	"encoding/json"

	"atelier/internal/file/library"
	"atelier/internal/money/budget"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/generations"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// GenerationPayload returns the webhook payload of a run that has ended. Its
// signed addresses are made for the person who started the run.
func GenerationPayload(links library.Links, rec generation.Record) ([]byte, error) {
	return json.Marshal(wire.WebhookEvent{
		Type:      wire.WebhookEventType("generation." + rec.State.Status()),
		Timestamp: rest.Moment(rec.Finished),
		Data:      generations.AsGeneration(links, rec, rec.PersonID),
	})
}

// BudgetPayload returns the webhook payload of a budget alert.
func BudgetPayload(a budget.Alert) ([]byte, error) {
	return json.Marshal(wire.BudgetEvent{Type: "budget.reached", Timestamp: rest.Moment(a.At), Data: wire.BudgetAlert{
		CompanyID:        a.CompanyID,
		TeamID:           a.TeamID,
		TeamName:         a.TeamName,
		Month:            a.Month,
		ThresholdPercent: a.Threshold,
		Tokens:           a.Tokens,
		Spent:            a.Spent,
	}})
}
