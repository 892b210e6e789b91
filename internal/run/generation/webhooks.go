package generation

import (
	"context"

	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/run"
)

// WebhookAttempts returns the delivery attempts of a run's webhook, the newest
// first.
func (s *Service) WebhookAttempts(ctx context.Context, accountID, runID string) ([]webhook.Attempt, error) {
	var attempts []webhook.Attempt
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		if _, err := run.Get(ctx, tx, accountID, runID); err != nil {
			return err
		}

		var err error
		attempts, err = webhook.Attempts(ctx, tx, runID)
		return err
	})
	return attempts, err
}

// RedeliverWebhook queues the webhook of a run for one more delivery, and
// returns the new state of the webhook.
func (s *Service) RedeliverWebhook(ctx context.Context, accountID, runID string) (*webhook.State, error) {
	var state *webhook.State
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := run.Get(ctx, tx, accountID, runID); err != nil {
			return err
		}
		if err := webhook.Redeliver(ctx, tx, runID); err != nil {
			return err
		}
		tx.AfterCommit(s.Ended)

		states, err := webhook.States(ctx, tx, runID)
		state = states[runID]
		return err
	})
	return state, err
}
