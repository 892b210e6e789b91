// Package cog runs tools on a Cog prediction server, the HTTP server that "cog
// build" adds to a model.
//
// Cog has neither a queue nor a way to query a prediction, so each prediction
// is a request that stays open until the model is done. If the connection
// breaks, the work ends. If the server has no free slot, it responds with an
// error and the run is retried later.
package cog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/manifestdraft"
)

// Options are the settings of a Cog engine.
type Options struct {
	// SendURLs makes the engine send input files as URLs, if they have any, to
	// a server that can reach this service. Otherwise the files are embedded
	// in the request.
	SendURLs bool
}

// Engine runs jobs on one Cog server.
type Engine struct {
	c *backend.Client
	o Options
}

var _ engine.Prober = (*Engine)(nil)

// New returns an engine that uses the server of c. It does not contact the
// server.
func New(c *backend.Client, o Options) *Engine { return &Engine{c, o} }

const (
	// maxFileBytes is the maximum total size of the files in one request, in
	// bytes. Encoded as base64, with the other inputs, they must stay below
	// the server's limit of 100 MiB.
	maxFileBytes = 72 << 20
	// slotRetries is the number of times that a request is repeated if the
	// server has no free slot, and slotPause the first pause, which doubles
	// each time. The server responds to a request slightly before it frees the
	// slot, so the next request sometimes comes too early.
	slotRetries = 6
	slotPause   = 40 * time.Millisecond
	// cancelTimeout limits the requests that cancel a prediction.
	cancelTimeout = time.Second
)

// Messages shown to people.
const (
	messageBusy        = "The tool's server is busy. Try again later."
	messageBadResponse = "The tool's server sent an invalid response."
	messageUnhealthy   = "The tool's server reports a failure. Try again later."
	messageRefused     = "The model refused the inputs."
	messageFailed      = "The model failed."
	messageStopped     = "The job was stopped on the tool's server."
	messageNoResult    = "The tool made no result."
)

// ManifestSpec describes the settings that a tool's manifest may have for this
// engine.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{Setting: func() any { return &backend.Mapping{} }}
}

// Run makes one prediction for all results if the model has an input for the
// number of results. Otherwise it makes one prediction after the other, each
// with its own seed.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var m backend.Mapping
	if err := engine.DecodeSetting(j.With, &m); err != nil {
		return err
	}
	as := outputShape{files: true}
	if j.OutputType == "TEXT" {
		var err error
		if as, err = e.fetchShape(ctx); err != nil {
			return err
		}
	}
	each := 1
	if m.Results != "" {
		each = j.NumResults
	}
	in, err := m.InputValues(ctx, j, j.Seed, each, e.fileConverter())
	if err != nil {
		return err
	}
	made := 0
	for n := 0; made < j.NumResults && (n == 0 || m.Results == ""); n++ {
		if n > 0 {
			in = m.WithSeed(in, j.SeedOf(n))
		}
		raw, err := e.runPrediction(ctx, fmt.Sprintf("%s-%d-%d-%d", j.RunID, j.Attempt, j.Try, n), in)
		if err != nil {
			return err
		}
		found, err := as.listResults(raw)
		if err != nil {
			return engine.Fail(engine.Invalid, messageBadResponse).WithCause(err)
		}
		if as.files {
			found = slices.DeleteFunc(found, func(ref string) bool { return backend.IsEcho(ref, j.Values) })
		}
		if len(found) == 0 {
			break
		}
		for _, r := range found[:min(len(found), j.NumResults-made)] {
			if err := e.deliverResult(ctx, as, r, out); err != nil {
				return err
			}
			made++
			out.Progress(float64(made) / float64(j.NumResults))
		}
	}
	if made == 0 { // if there is at least one result, the job succeeds with fewer than requested
		return engine.Fail(engine.Invalid, messageNoResult)
	}
	return nil
}

// fileConverter returns a function that converts a job's files to model
// inputs: URLs or data: URIs. The function counts the embedded bytes of all
// files.
func (e *Engine) fileConverter() func(context.Context, engine.File) (any, error) {
	left := int64(maxFileBytes)
	return func(ctx context.Context, f engine.File) (any, error) {
		if e.o.SendURLs && f.Address != nil {
			return f.Address(), nil
		}
		uri, err := backend.DataURI(ctx, f, left)
		left -= f.Size
		return uri, err
	}
}

// runPrediction makes a prediction with the inputs in and returns the model's
// output.
func (e *Engine) runPrediction(ctx context.Context, id string, in map[string]any) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := "predictions/" + url.PathEscape(id)
	var p struct {
		Status string          `json:"status"`
		Output json.RawMessage `json:"output"`
		Error  string          `json:"error"`
	}
	put := func() error {
		return e.c.CallJSONLimit(ctx, backend.MaxResponse, http.MethodPut, path, map[string]any{"input": in}, &p)
	}
	err := put()
	for n := 0; isFull(err) && n < slotRetries && waitFor(ctx, slotPause<<n) == nil; n++ {
		err = put()
	}
	if err != nil {
		if _, answered := errors.AsType[*backend.Status](err); !answered && ctx.Err() != nil {
			e.cancelPrediction(ctx, path)
		}
		return nil, callFailure(ctx, err)
	}
	switch p.Status {
	case "succeeded":
		return p.Output, nil
	case "failed":
		words := p.Error
		for more := true; more; {
			words, more = strings.CutPrefix(words, "Prediction failed: ")
		}
		return nil, backend.FailWithText(engine.Failed, messageFailed, words)
	case "canceled":
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, engine.FailTransient(engine.Failed, messageStopped) // a server that is shutting down cancels its predictions
	case "starting", "processing": // an earlier attempt with the same id is still running
		return nil, engine.FailTransient(engine.Unavailable, messageBusy)
	}
	return nil, engine.Fail(engine.Failed, messageBadResponse).WithCause(fmt.Errorf("status %.40q", p.Status))
}

// isFull reports whether the error of a request means that the server had no
// free slot.
func isFull(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && s.Code == http.StatusConflict
}

func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cancelPrediction requests that the server stop a prediction. A server that
// is reached directly has already stopped, because the connection is closed; a
// proxy in between may have kept its connection open. The server ignores a
// cancellation that arrives before the model has begun, so the request is
// repeated until the server no longer has the prediction.
func (e *Engine) cancelPrediction(ctx context.Context, path string) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer end()
	for e.c.CallJSON(ctx, http.MethodPost, path+"/cancel", nil, nil) == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// callFailure converts the error of a prediction request to the engine.Error
// that the run fails with.
func callFailure(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	switch {
	case ctx.Err() != nil || !ok:
	case isFull(err):
		return engine.FailTransient(engine.Unavailable, messageBusy).WithCause(err)
	case s.Code == http.StatusUnprocessableEntity:
		return backend.FailWithText(engine.Failed, messageRefused, inputErrors(s.Body)).WithCause(err)
	}
	return backend.CallFailure(ctx, err)
}

// inputErrors returns the server's message about invalid inputs. It returns ""
// if there is none.
func inputErrors(body []byte) string {
	var b struct {
		Detail json.RawMessage `json:"detail"`
		Error  string          `json:"error"`
	}
	_ = json.Unmarshal(body, &b) // a body of another form has no message
	return cmp.Or(backend.FastAPIDetail(b.Detail), b.Error)
}

// Probe checks the server's health. A busy server is healthy.
func (e *Engine) Probe(ctx context.Context) error {
	short, end := e.c.WithTimeout(ctx)
	defer end()
	var h struct {
		Status string `json:"status"`
	}
	if err := e.c.CallJSON(short, http.MethodGet, "health-check", nil, &h); err != nil {
		return backend.CallFailure(ctx, err)
	}
	switch h.Status {
	case "READY", "BUSY":
		return nil
	case "STARTING":
		return engine.FailTransient(engine.Unavailable, "The tool's server is still starting. Try again later.")
	}
	return engine.FailTransient(engine.Unavailable, messageUnhealthy).WithCause(fmt.Errorf("status %.40q", h.Status))
}

// ImportTool drafts a tool's manifest from the schema that the server has for
// its model.
func (e *Engine) ImportTool(ctx context.Context, name, engineName string) (manifestdraft.Tool, error) {
	ctx, end := e.c.WithTimeout(ctx)
	defer end()
	var doc json.RawMessage
	if err := e.c.CallJSON(ctx, http.MethodGet, "openapi.json", nil, &doc); err != nil {
		return manifestdraft.Tool{}, fmt.Errorf("fetch the model's schema: %w", err)
	}
	return manifestdraft.ToolFromSchema(doc, "Input", "Output", name, engineName)
}
