package comfyui

import (
	"context"
	"errors"
	"net/url"
	"time"

	"atelier/internal/engine/backend"
)

// cancelTimeout limits the requests that cancel the prompt of an ended job.
const cancelTimeout = time.Second

// cancelPrompt removes a prompt from the server when its job ends. It stops
// trying after cancelTimeout; the server then completes a prompt whose results
// nobody needs.
func (t *task) cancelPrompt(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	_ = t.removePrompt(ctx, id)
}

// Abandon removes the prompts of a run from the server. left is the run's
// checkpoint, which contains the prompts' ids.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	for _, id := range parseCheckpoint(left).Prompts {
		short, stop := e.server.WithTimeout(ctx)
		err := e.removePrompt(short, id)
		stop()
		if err := backend.CancelFailure(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// removePrompt removes a prompt from the server, whether it is pending or
// running. It returns no error if the prompt has ended or never existed.
func (e *Engine) removePrompt(ctx context.Context, id string) error {
	err := e.server.CallJSON(ctx, "POST", "/api/jobs/"+url.PathEscape(id)+"/cancel", map[string]any{}, nil)
	if _, old := errors.AsType[*backend.Status](err); !old {
		return err
	}
	// Older servers do not have the endpoint /api/jobs.
	if err := e.server.CallJSON(ctx, "POST", "/queue", map[string]any{"delete": []string{id}}, nil); err != nil {
		return err
	}
	// The oldest servers interrupt whichever prompt is running, so the request
	// is sent only if this prompt is running.
	found, err := e.findInQueue(ctx, id)
	if err != nil || found.state != stateRunning {
		return err
	}
	return e.server.CallJSON(ctx, "POST", "/interrupt", map[string]any{"prompt_id": id}, nil)
}
