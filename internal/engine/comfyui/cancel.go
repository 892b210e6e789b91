package comfyui

import (
	"context"
	"errors"
	"net/url"
	"time"

	"atelier/internal/engine/backend"
)

// cancelWait is how long a job that has to end spends on telling the server.
const cancelWait = time.Second

// cancel takes a prompt back when its job ends. It does what it can in a short
// time: a server that cannot be told works for nobody.
func (t *task) cancel(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer stop()
	_ = t.end(ctx, id)
}

// Abandon takes the prompts back that a note names.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	for _, id := range readNote(left).Prompts {
		short, stop := e.server.WithTimeout(ctx)
		err := e.end(short, id)
		stop()
		if err := backend.CancelFailure(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// end takes a prompt back, whether it waits or runs. One that is over, or was
// never there, is no error.
func (e *Engine) end(ctx context.Context, id string) error {
	err := e.server.CallJSON(ctx, "POST", "/api/jobs/"+url.PathEscape(id)+"/cancel", map[string]any{}, nil)
	if _, old := errors.AsType[*backend.Status](err); !old {
		return err
	}
	// Older servers have no such call.
	if err := e.server.CallJSON(ctx, "POST", "/queue", map[string]any{"delete": []string{id}}, nil); err != nil {
		return err
	}
	// The oldest interrupt whatever runs, so ours has to be what runs.
	at, err := e.queued(ctx, id)
	if err != nil || at != running {
		return err
	}
	return e.server.CallJSON(ctx, "POST", "/interrupt", map[string]any{"prompt_id": id}, nil)
}
