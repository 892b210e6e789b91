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
	// parting bounds what is done for a task that nobody waits for.
	parting = 1200 * time.Millisecond
	// strangeLooks is how often the server may say that it does not know a task
	// which it knew before, until that is believed.
	strangeLooks = 3
	// maxPreview is the largest picture that is worth showing.
	maxPreview = 4 << 20
)

// state is what the server says about one task.
type state struct {
	Active      bool    `json:"active"`
	Queued      bool    `json:"queued"`
	Completed   bool    `json:"completed"`
	Progress    float64 `json:"progress"`
	LivePreview string  `json:"live_preview"`
	PreviewID   int     `json:"id_live_preview"`
}

// ask asks how a task is coming along. before is the preview that is known
// already, -1 for none.
func (t *task) ask(ctx context.Context, name string, before int, preview bool) (state, error) {
	ctx, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	var s state
	err := t.e.c.CallJSON(ctx, http.MethodPost, "internal/progress", map[string]any{"id_task": name, "id_live_preview": before, "live_preview": preview}, &s)
	return s, err
}

// watched makes the call that does the task, and tells how it is coming along.
// Where the call ends without an answer, the server is told to stop.
func (t *task) watched(ctx context.Context, name string, call func(context.Context) error) error {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		t.follow(working, name, stop)
	}()
	err := call(working)
	lost := errors.Is(context.Cause(working), errLost)
	stop(nil)
	<-watching
	if err == nil {
		return ctx.Err() // what came may be what an interruption left
	}
	if lost && ctx.Err() == nil {
		return errLost.Because(err)
	}
	// A gateway that gave up waiting does not speak for the server.
	s, answered := errors.AsType[*backend.Status](err)
	if answered && (s.Code == http.StatusBadGateway || s.Code == http.StatusGatewayTimeout) || !answered && backend.MayHaveArrived(err) {
		t.interrupt(ctx, name)
	}
	return failure(ctx, err)
}

// follow tells progress and shows previews until ctx ends. A server that cannot
// say is not asked again; one that has lost the task ends the call.
func (t *task) follow(ctx context.Context, name string, stop context.CancelCauseFunc) {
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
		s, err := t.ask(ctx, name, preview, true)
		if missing(err) {
			return
		}
		if err != nil {
			continue // the call itself will tell
		}
		switch {
		case s.Active:
			t.bar.ReportProgress(s.Progress * 0.99) // all is done when the pictures are here
			if s.LivePreview != "" {
				preview = s.PreviewID
				t.show(s.LivePreview)
			}
			fallthrough
		case s.Queued || s.Completed:
			known = true
			strange = 0
		case known:
			if strange++; strange == strangeLooks {
				stop(errLost)
				return
			}
		}
	}
}

func (t *task) show(uri string) {
	r, err := backend.DataReader(uri)
	if err != nil {
		return // a preview may be left out
	}
	if picture, err := io.ReadAll(io.LimitReader(r, maxPreview)); err == nil {
		t.out.Preview(picture)
	}
}

// interrupt stops the server, but only while it works on our task.
func (t *task) interrupt(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	if s, err := t.ask(ctx, name, -1, false); err != nil || !s.Active {
		return
	}
	_ = t.e.c.CallJSON(ctx, http.MethodPost, "sdapi/v1/interrupt", nil, nil) // it ends by itself at last
}

// missing tells whether the server has no such call.
func missing(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && (s.Code == http.StatusNotFound || s.Code == http.StatusMethodNotAllowed)
}
