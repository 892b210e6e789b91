package a1111

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"atelier/internal/engine/backend"
)

const (
	// cancelTimeout limits the calls that cancel a task.
	cancelTimeout = 1200 * time.Millisecond
	// maxUnknownReplies is how often the server may report a known task as unknown before the task
	// counts as lost.
	maxUnknownReplies = 3
	// maxPreview is the largest preview that is shown.
	maxPreview = 4 << 20
)

// taskState is the server's state of one task.
type taskState struct {
	Active      bool    `json:"active"`
	Queued      bool    `json:"queued"`
	Completed   bool    `json:"completed"`
	Progress    float64 `json:"progress"`
	LivePreview string  `json:"live_preview"`
	PreviewID   int     `json:"id_live_preview"`
}

// queryState queries the state of a task. before is the last known preview, -1 for none.
func (t *task) queryState(ctx context.Context, name string, before int, preview bool) (taskState, error) {
	ctx, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	var s taskState
	err := t.e.c.CallJSON(ctx, http.MethodPost, "internal/progress", map[string]any{"id_task": name, "id_live_preview": before, "live_preview": preview}, &s)
	return s, err
}

// callWithProgress makes the call that does the task and reports its progress. If the call ends
// without a response, the server is interrupted.
func (t *task) callWithProgress(ctx context.Context, name string, call func(context.Context) error) error {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		t.followProgress(working, name, stop)
	}()
	err := call(working)
	lost := errors.Is(context.Cause(working), errLost)
	stop(nil)
	<-watching
	if err == nil {
		return ctx.Err() // the response may be the result of an interruption
	}
	if lost && ctx.Err() == nil {
		return errLost.WithCause(err)
	}
	// After a timeout of a gateway the server may still be working.
	s, answered := errors.AsType[*backend.Status](err)
	if answered && (s.Code == http.StatusBadGateway || s.Code == http.StatusGatewayTimeout) || !answered && backend.MayHaveArrived(err) {
		t.interruptTask(ctx, name)
	}
	return callFailure(ctx, err)
}

// followProgress reports progress and previews until ctx ends. It stops if the server does not
// support it, and ends the call if the server has lost the task.
func (t *task) followProgress(ctx context.Context, name string, stop context.CancelCauseFunc) {
	tick := time.NewTicker(t.e.poll)
	defer tick.Stop()
	preview := -1
	known := false
	strange := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, err := t.queryState(ctx, name, preview, true)
		if isMissing(err) {
			return
		}
		if err != nil {
			continue // the call itself reports the error
		}
		switch {
		case s.Active:
			t.bar.ReportProgress(s.Progress * 0.99) // complete when the pictures have arrived
			if s.LivePreview != "" {
				preview = s.PreviewID
				t.sendPreview(s.LivePreview)
			}
			fallthrough
		case s.Queued || s.Completed:
			known = true
			strange = 0
		case known:
			if strange++; strange == maxUnknownReplies {
				stop(errLost)
				return
			}
		}
	}
}

func (t *task) sendPreview(uri string) {
	r, err := backend.DataReader(uri)
	if err != nil {
		return // previews are optional
	}
	if picture, err := io.ReadAll(io.LimitReader(r, maxPreview)); err == nil {
		t.out.Preview(picture)
	}
}

// interruptTask interrupts the server only while it works on this task.
func (t *task) interruptTask(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	if s, err := t.queryState(ctx, name, -1, false); err != nil || !s.Active {
		return
	}
	_ = t.e.c.CallJSON(ctx, http.MethodPost, "sdapi/v1/interrupt", nil, nil) // on failure the task ends by itself
}

// isMissing reports whether the server does not have the call.
func isMissing(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && (s.Code == http.StatusNotFound || s.Code == http.StatusMethodNotAllowed)
}
