// Package cog runs tools on a Cog prediction server, which "cog build" packs around a model.
//
// Cog has neither a queue nor a way to query a prediction, so each prediction is a call that stays
// open until the model is done: if the connection breaks, the work ends. A server without a free
// slot reports that, and the run is retried later.
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

// Options are the engine's settings.
type Options struct {
	// SendURLs sends media inputs as URLs, if they have any, to a server that can reach this
	// service. Otherwise the inputs are embedded in the call.
	SendURLs bool
}

// Engine runs jobs on one server.
type Engine struct {
	c *backend.Client
	o Options
}

var _ engine.Prober = (*Engine)(nil)

// New returns an engine. It does not contact the server.
func New(c *backend.Client, o Options) *Engine { return &Engine{c, o} }

const (
	// maxFileBytes limits the files of one call: in base64 they and the rest must stay below the
	// server's limit of 100 MiB.
	maxFileBytes = 72 << 20
	// slotRetries and slotPause are for a server without a free slot: it responds
	// before its slot is free, so the next call sometimes comes too early. The
	// pause doubles each time.
	slotRetries = 6
	slotPause   = 40 * time.Millisecond
	// cancelTimeout limits the calls that cancel a prediction.
	cancelTimeout = time.Second
)

// Messages to people.
const (
	messageBusy        = "The tool's server is busy. Try again later."
	messageBadResponse = "The tool's server sent an invalid response."
	messageUnhealthy   = "The tool's server reports a failure. Try again later."
	messageRefused     = "The model refused the inputs."
	messageFailed      = "The model failed."
	messageStopped     = "The job was stopped on the tool's server."
	messageNoResult    = "The tool made no result."
)

// ManifestSpec describes the engine's settings in a manifest.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{Setting: func() any { return &backend.Mapping{} }}
}

// Run makes one prediction for all results if the model has an input for their number, or
// otherwise as many predictions as necessary, each with its own seed.
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
	if made == 0 { // fewer results than requested are better than none
		return engine.Fail(engine.Invalid, messageNoResult)
	}
	return nil
}

// fileConverter returns the function that converts a job's files to inputs.
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

// runPrediction runs the model and returns its output.
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
		return nil, engine.FailTransient(engine.Failed, messageStopped) // as a server does that is shutting down
	case "starting", "processing": // an earlier try with the same id is still running
		return nil, engine.FailTransient(engine.Unavailable, messageBusy)
	}
	return nil, engine.Fail(engine.Failed, messageBadResponse).WithCause(fmt.Errorf("status %.40q", p.Status))
}

// isFull reports whether the server had no free slot.
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

// cancelPrediction asks the server to stop. A server that is reached directly has stopped already,
// because the connection is closed; a proxy in between may have kept it open. A cancellation that
// comes before the model has begun is lost, so it is repeated until the server no longer has the
// prediction any more.
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

// callFailure translates a response that is not a prediction.
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

// inputErrors returns the server's message about wrong inputs. "": there is none.
func inputErrors(body []byte) string {
	var b struct {
		Detail json.RawMessage `json:"detail"`
		Error  string          `json:"error"`
	}
	_ = json.Unmarshal(body, &b) // a body of another form has no message
	return cmp.Or(backend.FastAPIDetail(b.Detail), b.Error)
}

// Probe queries the server's health. A busy server is healthy.
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

// ImportTool drafts a tool from the server's description of its model.
func (e *Engine) ImportTool(ctx context.Context, name, engineName string) (manifestdraft.Tool, error) {
	ctx, end := e.c.WithTimeout(ctx)
	defer end()
	var doc json.RawMessage
	if err := e.c.CallJSON(ctx, http.MethodGet, "openapi.json", nil, &doc); err != nil {
		return manifestdraft.Tool{}, fmt.Errorf("fetch the model's schema: %w", err)
	}
	return manifestdraft.ToolFromSchema(doc, "Input", "Output", name, engineName)
}
