package fal

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// task is the state of one job.
type task struct {
	backend.PaidJob
	e    *Engine
	with manifestSetting

	checkpoint checkpoint
	requests   []request
	delivered  int  // number of results passed to the sink
	blocked    bool // the provider has blacked out a result
}

// checkpoint is saved for the worker that continues the run.
type checkpoint struct {
	App      string   `json:"app"`                // app that the requests belong to, such as fal-ai/flux
	IDs      []string `json:"ids"`                // ids of the requests; an id is empty if the request has not been created
	Creating bool     `json:"creating,omitempty"` // the first request without an id is being created
}

// request contains the URLs of a request, which the queue returns when it
// accepts the request.
type request struct {
	Status   string `json:"status_url"`
	Response string `json:"response_url"`
	Cancel   string `json:"cancel_url"`

	resumed bool // created by an earlier attempt of the run
	done    bool // the request has ended
}

// requestAt returns the URLs of a request, relative to the queue's base URL. It
// derives them from the request's id.
func requestAt(app, id string) request {
	base := app + "/requests/" + url.PathEscape(id)
	return request{Status: base + "/status", Response: base, Cancel: base + "/cancel"}
}

// resumeCheckpoint restores the requests of an earlier attempt of the run.
// left is the saved checkpoint.
func (t *task) resumeCheckpoint(left string) {
	n := t.PieceCount()
	if err := json.Unmarshal([]byte(left), &t.checkpoint); err != nil || len(t.checkpoint.IDs) != n {
		t.checkpoint = checkpoint{IDs: make([]string, n)} // the checkpoint belongs to another engine, or the tool was edited
	}
	t.checkpoint.App = t.with.appName()
	t.requests = make([]request, n)
	for i, id := range t.checkpoint.IDs {
		if id != "" {
			t.requests[i] = requestAt(t.checkpoint.App, id)
			t.requests[i].resumed = true
		}
	}
}

// runRequests creates the requests that do not exist yet, waits for all, and
// passes their results to the sink in order.
func (t *task) runRequests(ctx context.Context) error {
	for i, id := range t.checkpoint.IDs {
		if id == "" {
			if err := t.createRequest(ctx, i); err != nil {
				return err
			}
		}
	}
	for i := range t.checkpoint.IDs {
		answer, err := t.awaitRequest(ctx, i)
		if err != nil {
			return err
		}
		if err := t.deliverResults(ctx, answer); err != nil {
			return err
		}
		t.ReportDelivered(i)
	}
	switch { // if there is at least one result, the job succeeds with fewer than requested
	case t.delivered > 0:
		return nil
	case t.blocked:
		return backend.ContentRefused("")
	}
	return backend.ErrToolNoResult
}

// queueState is the queue's response about the status of a request.
type queueState struct {
	ID     string `json:"request_id"`
	Status string `json:"status"`
	// Ahead is the number of requests that are served first. It is nil if the
	// queue does not report it.
	Ahead *int `json:"queue_position"`
	Logs  []struct {
		Message string `json:"message"`
	} `json:"logs"`
	Error     string `json:"error"`
	ErrorType string `json:"error_type"`
}

// position returns the position in the queue of a request that waits. The
// request that is served next has position 1; 0 means that the position is
// unknown.
func (s queueState) position() int {
	if s.Ahead == nil || *s.Ahead < 0 || *s.Ahead == math.MaxInt {
		return 0
	}
	return *s.Ahead + 1
}

// errCancelledBefore means that an earlier attempt cancelled the request when
// its worker had to stop.
var errCancelledBefore = errors.New("cancelled by an earlier attempt")

// awaitRequest waits until the job's request number i has succeeded and
// returns its response. A request that an earlier attempt cancelled is created
// again.
func (t *task) awaitRequest(ctx context.Context, i int) (json.RawMessage, error) {
	pace := backend.NewPoller(t.e.o.PollInterval, t.e.o.PollTimeout)
	for {
		answer, ended, err := t.queryRequest(ctx, i)
		switch {
		case errors.Is(err, errCancelledBefore):
			t.checkpoint.IDs[i] = ""
			t.requests[i] = request{}
			if err := t.createRequest(ctx, i); err != nil {
				return nil, err
			}
			continue
		case ended:
			t.requests[i].done = true
			return answer, err
		}
		if s, ok := errors.AsType[*backend.Status](err); ok && s.Code == http.StatusNotFound {
			t.requests[i].done = true
			return nil, backend.ErrJobLost.WithCause(err)
		}
		if err := pace.CheckError(ctx, err); err != nil {
			return nil, err
		}
		if err := pace.WaitNext(ctx); err != nil {
			return nil, err
		}
	}
}

// queryRequest queries the status of the job's request number i, and its
// response if it has ended. If ended is false, an error concerns the query and
// not the request.
func (t *task) queryRequest(ctx context.Context, i int) (answer json.RawMessage, ended bool, err error) {
	short, cancel := t.e.c.WithTimeout(ctx)
	defer cancel()
	r := t.requests[i]
	var s queueState
	if err := t.e.c.CallJSON(short, "GET", r.Status+"?logs=1", nil, &s); err != nil {
		return nil, false, err
	}
	if s.ID != "" && s.ID != t.checkpoint.IDs[i] {
		return nil, false, backend.ErrBadResponse.WithCause(errors.New("the response belongs to another request"))
	}
	switch s.Status {
	case "COMPLETED":
	case "IN_QUEUE":
		t.ReportQueued(s.position())
		return nil, false, nil
	default:
		last := 0.0
		for _, l := range s.Logs {
			last = max(last, backend.ProgressInLog(l.Message))
		}
		t.ReportRendering(i, last)
		return nil, false, nil
	}
	err = t.e.c.CallJSONLimit(ctx, backend.MaxResponse, "GET", r.Response, nil, &answer) // responses may contain embedded files
	if err == nil && s.Error == "" {
		return answer, true, nil
	}
	status, answered := errors.AsType[*backend.Status](err)
	if err != nil && !answered {
		return nil, false, err
	}
	why := failureReason{Type: s.ErrorType, Words: s.Error}
	if answered {
		why.readStatus(status)
	}
	if answered && s.Error == "" && !why.isRequestEnd(status.Code) {
		return nil, false, err
	}
	return nil, true, t.requestFailure(ctx, i, why, err)
}

// cancelRequests cancels requests whose results are not needed because err
// ends the run. After a transient failure, or if another worker continues the
// run, the requests continue and are resumed later. Requests that the queue
// agreed to cancel are removed from the checkpoint, because the queue may
// forget them.
func (t *task) cancelRequests(ctx context.Context, err error) {
	if !engine.IsFinal(ctx, err) {
		return
	}
	end, cancel := context.WithTimeout(t.Settle, 5*time.Second)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	cancelled := false
	for i, id := range t.checkpoint.IDs {
		if id == "" || t.requests[i].done {
			continue
		}
		all.Go(func() {
			if t.e.c.CallJSON(end, "PUT", t.requests[i].Cancel, nil, nil) == nil {
				mu.Lock()
				defer mu.Unlock()
				t.checkpoint.IDs[i] = ""
				cancelled = true
			}
		})
	}
	all.Wait()
	if cancelled {
		_ = t.SaveCheckpoint(end, t.checkpoint) // if this fails, the next worker queries the requests
	}
}

// Abandon cancels the requests whose ids are in a checkpoint. A request whose
// response was lost has no known id and cannot be cancelled.
func (e *Engine) Abandon(ctx context.Context, left string) error {
	var n checkpoint
	if json.Unmarshal([]byte(left), &n) != nil || !endpointPattern.MatchString(n.App) {
		return nil // the checkpoint belongs to another engine
	}
	for _, id := range n.IDs {
		if id == "" {
			continue
		}
		short, stop := e.c.WithTimeout(ctx)
		err := e.c.CallJSON(short, "PUT", requestAt(n.App, id).Cancel, nil, nil)
		stop()
		if err := backend.CancelFailure(ctx, err); err != nil {
			return err
		}
	}
	return nil
}
