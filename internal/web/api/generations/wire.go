package generations

import (
	"atelier/internal/notify/webhook"
	"atelier/internal/web/api/wire"
)

// AsWebhook converts the state of a run's webhook delivery to its API
// representation. It returns nil if the run has no webhook.
func AsWebhook(state *webhook.State) *wire.GenerationWebhook {
	if state == nil {
		return nil
	}
	return &wire.GenerationWebhook{State: wire.WebhookState(state.PublicState()), Attempts: int64(state.Attempts)}
}
