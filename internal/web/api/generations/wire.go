package generations

import (
	"atelier/internal/notify/webhook"
	"atelier/internal/web/api/wire"
)

// AsWebhook converts the delivery of a run's webhook, nil if the run has none.
func AsWebhook(state *webhook.State) *wire.GenerationWebhook {
	if state == nil {
		return nil
	}
	return &wire.GenerationWebhook{State: wire.WebhookState(state.PublicState()), Attempts: int64(state.Attempts)}
}
