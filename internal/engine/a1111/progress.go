package a1111

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

const (
	// cancelTimeout is the time limit of the requests that cancel a task.
	cancelTimeout = 1200 * time.Millisecond
	// maxUnknownReplies is the number of times that the server may report a
	// known task as unknown before the task counts as lost.
	maxUnknownReplies = 3
	// maxPreview is the maximum size of a preview picture, in bytes. Larger
	// ones are not shown.
	maxPreview = 4 << 20
)

// taskState is the server's response about the state of one task.
type taskState struct {
	Active      bool    `json:"active"`
	Queued      bool    `json:"queued"`
	Completed   bool    `json:"completed"`
	Progress    float64 `json:"progress"`
	LivePreview string  `json:"live_preview"`
	PreviewID   int     `json:"id_live_preview"`
}

// queryState queries the state of a task. before is the id of the last preview
// received, or -1 if there is none.
func (t *task) queryState(ctx context.Context, name string, before int, preview bool) (taskState, error) {
	ctx, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	var s taskState
	err := t.e.c.CallJSON(ctx, http.MethodPost, "internal/progress", map[string]any{"id_task": name, "id_live_preview": before, "live_preview": preview}, &s)
	return s, err
}

// callWithProgress calls the function call, which sends the request for the
// task called name, and reports the task's progress to bar until the response
// arrives. If there is no response, it interrupts the server.
func (t *task) callWithProgress(ctx context.Context, name string, bar engine.Span, call func(context.Context) error) error {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		t.followProgress(working, name, bar, stop)
	}()
	err := call(working)
	lost := errors.Is(context.Cause(working), errLost)
	stop(nil)
	<-watching
	if err == nil {
		return ctx.Err() // the response may contain the unfinished pictures of an interrupted task
	}
	if lost && ctx.Err() == nil {
		return errLost.WithCause(err)
	}
	// After a gateway timeout the server may still be working on the task.
	s, answered := errors.AsType[*backend.Status](err)
	if answered && (s.Code == http.StatusBadGateway || s.Code == http.StatusGatewayTimeout) || !answered && backend.MayHaveArrived(err) {
		t.interruptTask(ctx, name)
	}
	return callFailure(ctx, err)
}

// followProgress reports progress and previews until ctx is cancelled. It
// returns early if the server cannot report progress. If the server reports
// another task's progress because it does not have this task, the report is
// ignored. If the server has lost the task, followProgress calls stop, which
// cancels the request for the task.
func (t *task) followProgress(ctx context.Context, name string, bar engine.Span, stop context.CancelCauseFunc) {
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
			continue // the request for the task reports the error
		}
		if s.Queued && !s.Active {
			bar.ReportQueued(0) // the server does not report the position
		}
		switch {
		case s.Active:
			bar.ReportProgress(s.Progress * 0.99) // 100% is reported when the pictures have arrived
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
		return // an invalid preview is ignored, because previews are optional
	}
	if picture, err := io.ReadAll(io.LimitReader(r, maxPreview)); err == nil {
		t.out.Preview(picture)
	}
}

// interruptTask interrupts the server if it is working on the named task. An
// interrupt applies to any running task, so it must not be sent during another
// client's task.
func (t *task) interruptTask(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	if s, err := t.queryState(ctx, name, -1, false); err != nil || !s.Active {
		return
	}
	_ = t.e.c.CallJSON(ctx, http.MethodPost, "sdapi/v1/interrupt", nil, nil) // if the request fails, the task continues until it is done
}

// isMissing reports whether the error of a request means that the server does
// not have the API endpoint.
func isMissing(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && (s.Code == http.StatusNotFound || s.Code == http.StatusMethodNotAllowed)
}
