package cog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// task is the state of one job.
type task struct {
	e     *Engine
	job   engine.Job
	out   engine.Sink
	with  manifestSetting
	shape outputShape
	bar   engine.Span
	made  int // number of results passed to the sink
}

// prediction is the server's description of a prediction.
type prediction struct {
	Status string          `json:"status"`
	Output json.RawMessage `json:"output"`
	Error  string          `json:"error"`
}

// eventStream is the media type of streaming responses.
const eventStream = "text/event-stream"

// runPrediction makes the job's prediction number n, with the given model
// inputs, and passes its results to the sink.
func (t *task) runPrediction(ctx context.Context, n int, in map[string]any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The id must be unique: if a prediction with this id were running, the
	// server would respond with the results of that prediction.
	id := fmt.Sprintf("%s-%d-%d-%d", t.job.RunID, t.job.Attempt, t.job.Try, n)
	path := "predictions/" + url.PathEscape(id)
	body, err := json.Marshal(map[string]any{"input": in})
	if err != nil {
		return err
	}

	res, err := t.e.putPrediction(ctx, path, body, t.shape.streams)
	if err != nil {
		if _, answered := errors.AsType[*backend.Status](err); !answered && ctx.Err() != nil {
			t.e.cancelPrediction(ctx, path)
		}
		return callFailure(ctx, err)
	}
	ended, err := t.readPrediction(ctx, id, res)
	if !ended {
		t.e.cancelPrediction(ctx, path)
	}
	return err
}

// putPrediction sends the request for a prediction. It repeats the request for
// a short time while the server has no free slot. If streams is set, it
// requests a streaming response.
func (e *Engine) putPrediction(ctx context.Context, path string, body []byte, streams bool) (*http.Response, error) {
	put := func() (*http.Response, error) {
		r := backend.Request{Method: http.MethodPut, Path: path, Body: bytes.NewReader(body), Type: "application/json"}
		if streams {
			r.Header = [][2]string{{"Accept", eventStream}}
		}
		return e.c.Do(ctx, r)
	}
	res, err := put()
	for n := 0; isFull(err) && n < slotRetries && waitFor(ctx, slotPause<<n) == nil; n++ {
		res, err = put()
	}
	return res, err
}

// readPrediction reads the response to a request for a prediction, passes the
// results to the sink and closes the response. It returns false if the
// prediction may still run.
func (t *task) readPrediction(ctx context.Context, id string, res *http.Response) (ended bool, err error) {
	defer res.Body.Close()
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == eventStream {
		return t.readEvents(ctx, id, res.Body)
	}
	var p prediction
	if err := backend.DecodeJSONLimit(res.Body, backend.MaxResponse, &p); err != nil {
		return ctx.Err() == nil, callFailure(ctx, err)
	}
	if err := p.failure(ctx); err != nil {
		return true, err
	}
	return true, t.deliverOutput(ctx, id, p.Output)
}

// readEvents reads a streaming response and passes each result to the sink as
// soon as it arrives. When the job has all its results, the prediction may
// continue for endPause. readEvents returns false if the prediction may still
// run.
func (t *task) readEvents(ctx context.Context, id string, body io.ReadCloser) (ended bool, err error) {
	limited := &io.LimitedReader{R: body, N: 2*backend.MaxResponse + 1} // twice the maximum, because the last event repeats all outputs
	s := eventReader{task: t, id: id, hasAll: func() { time.AfterFunc(endPause, func() { body.Close() }) }}
	err = backend.EachEvent(limited, backend.MaxResponse, func(name string, data []byte) error { return s.handleEvent(ctx, name, data) })
	switch {
	case s.failed != nil:
		return s.ended, s.failed
	case t.made == t.job.NumResults:
		return s.ended, nil
	case limited.N <= 0:
		return false, backend.ErrTooLarge
	case err == nil && !s.ended:
		err = io.ErrUnexpectedEOF
	}
	if s.ended {
		return true, nil
	}
	return false, callFailure(ctx, err)
}

// eventReader handles the events of one streaming response.
type eventReader struct {
	*task
	id       string
	hasAll   func() // called once, when the job has all its results
	streamed bool   // at least one output arrived in a separate event
	ended    bool   // the prediction has ended
	failed   error  // the failure of the prediction, or of passing on a result
}

// errStop ends the reading of events.
var errStop = errors.New("stop reading events")

// handleEvent handles one event. It returns errStop if no more events are
// needed.
func (s *eventReader) handleEvent(ctx context.Context, name string, data []byte) error {
	before := s.made
	switch name {
	case "log":
		var log struct {
			Data string `json:"data"`
		}
		_ = json.Unmarshal(data, &log) // if the log has another format, there is no progress to report
		s.reportLog(log.Data)
	case "output":
		s.failed = s.handleOutput(ctx, data)
	case "completed":
		s.ended = true
		s.failed = s.handleEnd(ctx, data)
	case "error": // the server dropped events, because they were read too slowly
		s.failed = engine.FailTransient(engine.Failed, messageBadResponse).WithCause(errors.New("the event stream is incomplete"))
	}
	if s.failed != nil || s.ended {
		return errStop
	}
	if s.made > before && s.made == s.job.NumResults {
		s.hasAll()
	}
	return nil
}

func (s *eventReader) handleOutput(ctx context.Context, data []byte) error {
	if s.shape.whole { // all parts of the text are in the last event
		return nil
	}
	var part struct {
		Chunk json.RawMessage `json:"chunk"`
	}
	if err := json.Unmarshal(data, &part); err != nil {
		return badOutput(err)
	}
	s.streamed = true
	return s.deliverOutput(ctx, s.id, part.Chunk)
}

func (s *eventReader) handleEnd(ctx context.Context, data []byte) error {
	var p prediction
	if err := json.Unmarshal(data, &p); err != nil {
		return badOutput(err)
	}
	if err := p.failure(ctx); err != nil || s.streamed {
		return err
	}
	return s.deliverOutput(ctx, s.id, p.Output)
}

// reportLog reports the progress in a part of the model's log. If the model
// makes all results at once, the progress applies to all of them, otherwise to
// the next result.
func (t *task) reportLog(log string) {
	fraction := backend.ProgressInLog(log)
	if fraction == 0 {
		return
	}
	if t.with.Results != "" || t.made == t.job.NumResults {
		t.bar.ReportProgress(fraction)
		return
	}
	t.bar.NthOf(t.made, t.job.NumResults).ReportProgress(fraction)
}

// failure returns the error of a prediction that did not succeed.
func (p prediction) failure(ctx context.Context) error {
	switch p.Status {
	case "succeeded":
		return nil
	case "failed":
		words := p.Error
		for more := true; more; {
			words, more = strings.CutPrefix(words, "Prediction failed: ")
		}
		return backend.FailWithText(engine.Failed, messageFailed, words)
	case "canceled":
		if err := ctx.Err(); err != nil {
			return err
		}
		return engine.FailTransient(engine.Failed, messageStopped) // a server that is shutting down cancels its predictions
	case "starting", "processing": // an earlier attempt with the same id is still running
		return engine.FailTransient(engine.Unavailable, messageBusy)
	}
	return engine.Fail(engine.Failed, messageBadResponse).WithCause(fmt.Errorf("unexpected status %.40q", p.Status))
}

// deliverOutput passes the results in an output of the prediction called id to
// the sink, as many as the job still needs.
func (t *task) deliverOutput(ctx context.Context, id string, output json.RawMessage) error {
	found, err := t.shape.listResults(output)
	if err != nil {
		return badOutput(err)
	}
	if t.shape.files {
		found = slices.DeleteFunc(found, func(ref string) bool { return backend.IsEcho(ref, t.job.Values) })
	}
	for _, result := range found[:min(len(found), t.job.NumResults-t.made)] {
		if t.shape.files && !t.with.AnyURL && !strings.HasPrefix(result, "data:") && !strings.Contains(result, id) {
			return badOutput(errors.New("the URL of a result does not contain the prediction's id, so the file may belong to another prediction; any_url in the manifest accepts it"))
		}
		if err := t.deliverResult(ctx, result); err != nil {
			return err
		}
		t.made++
		t.bar.ReportProgress(float64(t.made) / float64(t.job.NumResults))
	}
	return nil
}

// deliverResult passes one result, a URL or text, to the sink.
func (t *task) deliverResult(ctx context.Context, result string) error {
	if !t.shape.files {
		return t.out.Output(ctx, engine.Result{Data: strings.NewReader(result)})
	}
	return t.e.c.DeliverFile(ctx, result, t.out)
}

// badOutput returns the failure for an output that does not match the model's
// schema.
func badOutput(cause error) error {
	return engine.Fail(engine.Invalid, messageBadResponse).WithCause(cause)
}
