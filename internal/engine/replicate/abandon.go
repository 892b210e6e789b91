package replicate

import (
	"context"
	"encoding/json"

	"atelier/internal/engine/backend"
)

// Abandon cancels the predictions that a note names, and the one whose create
// was not answered where it is beyond doubt.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	var n note
	if json.Unmarshal([]byte(left), &n) != nil {
		return nil // of another engine
	}
	for _, id := range n.IDs {
		if err := e.end(ctx, id); err != nil {
			return err
		}
	}
	if n.Creating == "" || n.Of == nil {
		return nil
	}
	found, err := e.seek(ctx, *n.Of, n)
	if err != nil || len(found) != 1 {
		return backend.Ended(ctx, err)
	}
	return e.end(ctx, found[0])
}

func (e *Engine) end(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	short, stop := e.c.Short(ctx)
	defer stop()
	return backend.Ended(ctx, e.cancel(short, id))
}
