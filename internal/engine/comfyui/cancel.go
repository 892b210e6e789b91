package comfyui

import (
	"context"
	"errors"
	"net/url"
	"time"

	"atelier/internal/engine/backend"
)

// cancelTimeout limits the calls that cancel an ended job's prompt.
const cancelTimeout = time.Second

// cancelPrompt removes a prompt from the server when its job ends. It stops trying after a short
// time: the server's work is then wasted.
func (t *task) cancelPrompt(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	_ = t.removePrompt(ctx, id)
}

// Abandon removes the prompts that a checkpoint names.
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

// removePrompt removes a prompt from the server, whether it is pending or running. A prompt that
// has ended or never existed is no error.
func (e *Engine) removePrompt(ctx context.Context, id string) error {
	err := e.server.CallJSON(ctx, "POST", "/api/jobs/"+url.PathEscape(id)+"/cancel", map[string]any{}, nil)
	if _, old := errors.AsType[*backend.Status](err); !old {
		return err
	}
	// Older servers do not have this call.
	if err := e.server.CallJSON(ctx, "POST", "/queue", map[string]any{"delete": []string{id}}, nil); err != nil {
		return err
	}
	// The oldest servers interrupt any running prompt, so this one must be the
	// running one.
	at, err := e.findInQueue(ctx, id)
	if err != nil || at != stateRunning {
		return err
	}
	return e.server.CallJSON(ctx, "POST", "/interrupt", map[string]any{"prompt_id": id}, nil)
}
