package replicate

import (
	"context"
	"encoding/json"

	"atelier/internal/engine/backend"
)

// Abandon cancels the predictions whose ids are in a checkpoint. It also
// cancels the prediction whose create request got no response, if it can be
// identified with certainty.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	var n checkpoint
	if json.Unmarshal([]byte(left), &n) != nil {
		return nil // the checkpoint belongs to another engine
	}
	for _, id := range n.IDs {
		if err := e.cancelIfRunning(ctx, id); err != nil {
			return err
		}
	}
	if n.Creating == "" || n.Of == nil {
		return nil
	}
	found, err := e.findRepeatedly(ctx, *n.Of, n)
	if err != nil || len(found) != 1 {
		return backend.CancelFailure(ctx, err)
	}
	return e.cancelIfRunning(ctx, found[0])
}

func (e *Engine) cancelIfRunning(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	short, stop := e.c.WithTimeout(ctx)
	defer stop()
	return backend.CancelFailure(ctx, e.cancelPrediction(short, id))
}
