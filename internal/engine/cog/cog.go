// Package cog runs tools on a Cog prediction server, the HTTP server that "cog
// build" adds to a model.
//
// Cog has neither a queue nor a way to query a prediction, so each prediction
// is a request that stays open until the model is done. If the connection
// breaks, the work ends. If the server has no free slot, it responds with an
// error and the run is retried later.
//
// A model that returns a list, or yields its results one after the other, has
// several results. If the model supports streaming responses, each result is
// delivered as soon as the model has yielded it.
package cog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/manifestdraft"
)

// Options are the settings of a Cog engine.
type Options struct {
	// SendURLs makes the engine send the URLs of input files, where they exist,
	// instead of embedding the files in the request. The server must be able to
	// reach this service.
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
	// slot, so the next request sometimes arrives before the slot is free.
	slotRetries = 6
	slotPause   = 40 * time.Millisecond
	// endPause is how long a prediction may continue after the job has all its
	// results. A model that yields more results is then stopped.
	endPause = 2 * time.Second
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

// manifestSetting is the engine.with section of a tool's manifest.
type manifestSetting struct {
	backend.Mapping
	// AnyURL makes the engine also accept results whose URLs do not contain the
	// prediction's id. A server that uploads its results (--upload-url) gives
	// files of different predictions the same URL if they have the same name.
	AnyURL bool `json:"any_url"`
}

// ManifestSpec describes the settings that a tool's manifest may have for this
// engine.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{Setting: func() any { return &manifestSetting{} }}
}

// Run makes one prediction for all results if the model has an input for the
// number of results. Otherwise it makes one prediction after the other, each
// with its own seed, until there are enough results.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := task{e: e, job: j, out: backend.DropCopies(j, out), bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.with); err != nil {
		return err
	}
	var err error
	if t.shape, err = e.fetchShape(ctx, j.OutputType); err != nil {
		return err
	}
	each := 1
	if t.with.Results != "" {
		each = j.NumResults
	}
	in, err := t.with.InputValues(ctx, j, j.Seed, each, e.fileConverter())
	if err != nil {
		return err
	}
	for n := 0; t.made < j.NumResults && (n == 0 || !t.with.MakesAllAtOnce()); n++ {
		if n > 0 {
			in = t.with.WithSeed(in, j.SeedOf(n))
		}
		before := t.made
		if err := t.runPrediction(ctx, n, in); err != nil {
			return err
		}
		if t.made == before {
			break
		}
	}
	if t.made == 0 { // if there is at least one result, the job succeeds with fewer than requested
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

// cancelPrediction requests that the server stop a prediction. A server that is
// reached directly has already stopped it, because the connection is closed; a
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
	_ = json.Unmarshal(body, &b) // if the body has another format, there is no message
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
	return engine.FailTransient(engine.Unavailable, messageUnhealthy).WithCause(fmt.Errorf("unexpected status %.40q", h.Status))
}

// ImportTool drafts a tool's manifest from the schema that the server has for
// its model. outputType is the tool's output type. If it is empty, ImportTool
// guesses it, because the schema does not specify whether files are pictures,
// sounds or videos.
func (e *Engine) ImportTool(ctx context.Context, name, engineName, outputType string) (manifestdraft.Tool, error) {
	ctx, end := e.c.WithTimeout(ctx)
	defer end()
	var doc json.RawMessage
	if err := e.c.CallJSON(ctx, http.MethodGet, "openapi.json", nil, &doc); err != nil {
		return manifestdraft.Tool{}, fmt.Errorf("fetch the model's schema: %w", err)
	}
	return manifestdraft.ToolFromSchema(manifestdraft.Source{
		Doc:        doc,
		Input:      "Input",
		Output:     "Output",
		Name:       name,
		Engine:     engineName,
		OutputType: outputType,
	})
}
