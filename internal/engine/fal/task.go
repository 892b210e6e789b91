package fal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// task is one call of Run.
type task struct {
	e    *Engine
	job  engine.Job
	out  engine.Sink
	with setting
	end  context.Context // goes on a little after the job's

	note     note
	requests []request
	bar      engine.Span
	inputs   map[string]any
	given    int  // results that were handed over
	black    bool // there were others, which the provider had painted over
}

// note is what the next worker has to know.
type note struct {
	App      string   `json:"app"`                // where the requests are found
	IDs      []string `json:"ids"`                // of the requests, "" for those to be made
	Creating bool     `json:"creating,omitempty"` // the first of those is being made
}

// request is where one is found. The queue says so when it takes it.
type request struct {
	Status   string `json:"status_url"`
	Response string `json:"response_url"`
	Cancel   string `json:"cancel_url"`

	old  bool // of an earlier try
	done bool // it has ended
}

// at gives where a request is found that is only known by its id.
func at(app, id string) request {
	base := app + "/requests/" + url.PathEscape(id)
	return request{Status: base + "/status", Response: base, Cancel: base + "/cancel"}
}

// takeUp begins where an earlier try of the run ended.
func (t *task) takeUp(left string) {
	n := t.job.NumResults
	if t.with.Results != "" {
		n = 1 // one request makes them all
	}
	if err := json.Unmarshal([]byte(left), &t.note); err != nil || len(t.note.IDs) != n {
		t.note = note{IDs: make([]string, n)} // of another engine, or of an edited tool
	}
	t.note.App = t.with.app()
	t.requests = make([]request, n)
	for i, id := range t.note.IDs {
		if id != "" {
			t.requests[i] = at(t.note.App, id)
			t.requests[i].old = true
		}
	}
}

func (t *task) leave(ctx context.Context) error {
	text, err := json.Marshal(t.note)
	if err != nil {
		return err
	}
	return t.out.Leave(ctx, string(text))
}

// all makes the requests that are to be made and hands over the results in
// order.
func (t *task) all(ctx context.Context) error {
	for i, id := range t.note.IDs {
		if id == "" {
			if err := t.create(ctx, i); err != nil {
				return err
			}
		}
	}
	for i := range t.note.IDs {
		answer, err := t.watch(ctx, i)
		if err != nil {
			return err
		}
		if err := t.deliver(ctx, answer); err != nil {
			return err
		}
		t.part(i).ReportProgress(1)
	}
	switch { // fewer than were wanted are better than none
	case t.given > 0:
		return nil
	case t.black:
		return errBlack
	}
	return errNone
}

// state is what the queue says about a request.
type state struct {
	Status string `json:"status"`
	Logs   []struct {
		Message string `json:"message"`
	} `json:"logs"`
	Error     string `json:"error"`
	ErrorType string `json:"error_type"`
}

var (
	errLost      = engine.Fail(engine.Failed, "The provider no longer knows the job.")
	errCancelled = engine.Fail(engine.Failed, "The provider cancelled the job.")
)

// errAfresh is a request that the worker before us took back when it had to go.
var errAfresh = errors.New("cancelled by an earlier try")

// watch waits until a request has ended well, and gives its answer.
func (t *task) watch(ctx context.Context, i int) (json.RawMessage, error) {
	pace := t.e.pace()
	for {
		answer, ended, err := t.look(ctx, i)
		switch {
		case errors.Is(err, errAfresh):
			t.note.IDs[i] = ""
			t.requests[i] = request{}
			if err := t.create(ctx, i); err != nil {
				return nil, err
			}
			continue
		case ended:
			t.requests[i].done = true
			return answer, err
		}
		if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
			t.requests[i].done = true
			return nil, errLost.Because(err)
		}
		if err := pace.Bear(ctx, err); err != nil {
			return nil, err
		}
		if err := pace.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// look asks how far a request is, and for its answer where it has ended. The
// error of one that has not ended is one of asking.
func (t *task) look(ctx context.Context, i int) (answer json.RawMessage, ended bool, err error) {
	short, cancel := t.e.c.Short(ctx)
	defer cancel()
	r := t.requests[i]
	var s state
	if err := t.e.c.JSON(short, "GET", r.Status+"?logs=1", nil, &s); err != nil {
		return nil, false, err
	}
	if s.Status != "COMPLETED" {
		last := 0.0
		for _, l := range s.Logs {
			last = max(last, backend.Logged(l.Message))
		}
		t.part(i).ReportProgress(making * last)
		return nil, false, nil
	}
	err = t.e.c.JSONUpTo(ctx, backend.MaxAnswer, "GET", r.Response, nil, &answer) // models may be told to put files in it
	if err == nil && s.Error == "" {
		return answer, true, nil
	}
	status, answered := errors.AsType[*backend.Status](err)
	if err != nil && !answered {
		return nil, false, err
	}
	why := reason{Type: s.ErrorType, Words: s.Error}
	if answered {
		why.read(status)
	}
	if answered && s.Error == "" && !why.ofRequest(status.Code) {
		return nil, false, err
	}
	return nil, true, t.failed(ctx, i, why, err)
}

// part is the stretch of the progress that belongs to a request.
func (t *task) part(i int) engine.Span { return t.bar.NthOf(i, len(t.note.IDs)) }

// making is how much of that it takes to make a result; the rest is to fetch it.
const making = 0.95

// stop takes back what nobody will ask for. After a failure that may pass, or
// where another worker goes on, it is taken up instead. The note forgets what the
// queue agreed to cancel: it may not know such requests any more.
func (t *task) stop(ctx context.Context, err error) {
	if engine.IsHandedOver(ctx) || ctx.Err() == nil && engine.As(err).Transient {
		return
	}
	end, cancel := context.WithTimeout(t.end, 5*time.Second)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	cancelled := false
	for i, id := range t.note.IDs {
		if id == "" || t.requests[i].done {
			continue
		}
		all.Go(func() {
			if t.e.c.JSON(end, "PUT", t.requests[i].Cancel, nil, nil) == nil {
				mu.Lock()
				defer mu.Unlock()
				t.note.IDs[i] = ""
				cancelled = true
			}
		})
	}
	all.Wait()
	if cancelled {
		_ = t.leave(end) // whoever comes next finds out by asking
	}
}

// Abandon takes the requests back that a note names. One whose answer is missing
// cannot be found.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	var n note
	if json.Unmarshal([]byte(left), &n) != nil || !endpoint.MatchString(n.App) {
		return nil // of another engine
	}
	for _, id := range n.IDs {
		if id == "" {
			continue
		}
		short, stop := e.c.Short(ctx)
		err := e.c.JSON(short, "PUT", at(n.App, id).Cancel, nil, nil)
		stop()
		if err := backend.Ended(ctx, err); err != nil {
			return err
		}
	}
	return nil
}
