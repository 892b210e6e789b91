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

// cancel takes a prompt back, whether it waits or runs. It does what it can in
// a short time: a server that cannot be told works for nobody.
func (t *task) cancel(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer stop()
	err := t.server.JSON(ctx, "POST", "/api/jobs/"+url.PathEscape(id)+"/cancel", map[string]any{}, nil)
	if _, old := errors.AsType[*backend.Status](err); !old {
		return
	}
	// Older servers have no such call.
	if t.server.JSON(ctx, "POST", "/queue", map[string]any{"delete": []string{id}}, nil) != nil {
		return
	}
	// The oldest interrupt whatever runs, so ours has to be what runs.
	if at, err := t.queued(ctx, id); err == nil && at == running {
		_ = t.server.JSON(ctx, "POST", "/interrupt", map[string]any{"prompt_id": id}, nil)
	}
}
