// Package cog runs tools on a Cog prediction server, one that cog build packs
// around a model.
//
// Cog has no queue and no way to ask after a prediction, so each is a call that
// is held open until the model is done: when the connection goes, so does the
// work. A server that has no slot free says so, and the run comes again later.
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

// Options are how files travel.
type Options struct {
	// Addresses gives the server the addresses of media inputs, where they have
	// any, for a server that can reach us. Without, they are part of the call.
	Addresses bool
}

// Engine runs jobs on one server.
type Engine struct {
	c *backend.Client
	o Options
}

var _ engine.Prober = (*Engine)(nil)

// New makes an engine without talking to the server.
func New(c *backend.Client, o Options) *Engine { return &Engine{c, o} }

const (
	// maxFiles bounds the files of one call: in base64 they and the rest have to
	// stay below the 100 MiB that the server reads.
	maxFiles = 72 << 20
	// retries and pause are how a server without a free slot is asked again: it
	// answers before its slot is free, so the next call comes too early at
	// times. The pause doubles.
	retries = 6
	pause   = 40 * time.Millisecond
	// farewell is how long a server is asked to stop what nobody waits for.
	farewell = time.Second
)

// What people are told.
const (
	busy    = "The tool's server is busy."
	garbled = "The tool's server answered something that is not understood."
	unwell  = "The tool's server is not well."
	refused = "The model did not take the inputs."
	failed  = "The model could not do it."
	stopped = "The work was stopped on the tool's server."
	nothing = "The tool made no result."
)

// Manual says what a manifest can ask of the engine.
func Manual() engine.Manual {
	return engine.Manual{Setting: func() any { return &backend.Mapping{} }}
}

// Run asks for one prediction that gives all results, where the model has an
// input for how many, or else for as many predictions as it takes, each with a
// seed of its own.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var m backend.Mapping
	if err := engine.DecodeSetting(j.With, &m); err != nil {
		return err
	}
	as := shape{files: true}
	if j.OutputType == "TEXT" {
		var err error
		if as, err = e.shape(ctx); err != nil {
			return err
		}
	}
	each := 1
	if m.Results != "" {
		each = j.NumResults
	}
	in, err := m.InputValues(ctx, j, j.Seed, each, e.files())
	if err != nil {
		return err
	}
	made := 0
	for n := 0; made < j.NumResults && (n == 0 || m.Results == ""); n++ {
		if n > 0 {
			in = m.WithSeed(in, j.SeedOf(n))
		}
		raw, err := e.predict(ctx, fmt.Sprintf("%s-%d-%d-%d", j.RunID, j.Attempt, j.Try, n), in)
		if err != nil {
			return err
		}
		found, err := as.results(raw)
		if err != nil {
			return engine.Fail(engine.Invalid, garbled).Because(err)
		}
		if as.files {
			found = slices.DeleteFunc(found, func(ref string) bool { return backend.IsEcho(ref, j.Values) })
		}
		if len(found) == 0 {
			break
		}
		for _, r := range found[:min(len(found), j.NumResults-made)] {
			if err := e.hand(ctx, as, r, out); err != nil {
				return err
			}
			made++
			out.Progress(float64(made) / float64(j.NumResults))
		}
	}
	if made == 0 { // fewer than were wanted are better than none
		return engine.Fail(engine.Invalid, nothing)
	}
	return nil
}

// files gives what turns a job's files into inputs.
func (e *Engine) files() func(context.Context, engine.File) (any, error) {
	left := int64(maxFiles)
	return func(ctx context.Context, f engine.File) (any, error) {
		if e.o.Addresses && f.Address != nil {
			return f.Address(), nil
		}
		uri, err := backend.DataURI(ctx, f, left)
		left -= f.Size
		return uri, err
	}
}

// predict has the model work and gives its output.
func (e *Engine) predict(ctx context.Context, id string, in map[string]any) (json.RawMessage, error) {
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
	for n := 0; full(err) && n < retries && wait(ctx, pause<<n) == nil; n++ {
		err = put()
	}
	if err != nil {
		if _, answered := errors.AsType[*backend.Status](err); !answered && ctx.Err() != nil {
			e.cancel(ctx, path)
		}
		return nil, refusal(ctx, err)
	}
	switch p.Status {
	case "succeeded":
		return p.Output, nil
	case "failed":
		words := p.Error
		for more := true; more; {
			words, more = strings.CutPrefix(words, "Prediction failed: ")
		}
		return nil, backend.FailWithText(engine.Failed, failed, words)
	case "canceled":
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, engine.Again(engine.Failed, stopped) // as a server does that is told to go
	case "starting", "processing": // an earlier try of the same name has not ended there yet
		return nil, engine.Again(engine.Unavailable, busy)
	}
	return nil, engine.Fail(engine.Failed, garbled).Because(fmt.Errorf("status %.40q", p.Status))
}

// full tells whether the server had no slot free.
func full(err error) bool {
	s, ok := errors.AsType[*backend.Status](err)
	return ok && s.Code == http.StatusConflict
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cancel asks the server to stop. Where it is reached directly it has stopped
// already, because the connection is gone; a proxy between may have kept that
// to itself. One that comes before the model has begun is lost, so it is sent
// again until the server does not know the prediction any more.
func (e *Engine) cancel(ctx context.Context, path string) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer end()
	for e.c.CallJSON(ctx, http.MethodPost, path+"/cancel", nil, nil) == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// refusal says what an answer that is no prediction means.
func refusal(ctx context.Context, err error) error {
	s, ok := errors.AsType[*backend.Status](err)
	switch {
	case ctx.Err() != nil || !ok:
	case full(err):
		return engine.Again(engine.Unavailable, busy).Because(err)
	case s.Code == http.StatusUnprocessableEntity:
		return backend.FailWithText(engine.Failed, refused, complaint(s.Body)).Because(err)
	}
	return backend.CallFailure(ctx, err)
}

// complaint gives what the server finds wrong with the inputs, "" where it does
// not say.
func complaint(body []byte) string {
	var b struct {
		Detail json.RawMessage `json:"detail"`
		Error  string          `json:"error"`
	}
	_ = json.Unmarshal(body, &b) // no words are no words
	return cmp.Or(backend.FastAPIDetail(b.Detail), b.Error)
}

// Probe asks how the server is. One that is busy is well.
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
		return engine.Again(engine.Unavailable, "The tool's server is still starting.")
	}
	return engine.Again(engine.Unavailable, unwell).Because(fmt.Errorf("status %.40q", h.Status))
}

// Import drafts a tool of what the server says about its model.
func (e *Engine) Import(ctx context.Context, name, engineName string) (manifestdraft.Tool, error) {
	ctx, end := e.c.WithTimeout(ctx)
	defer end()
	var doc json.RawMessage
	if err := e.c.CallJSON(ctx, http.MethodGet, "openapi.json", nil, &doc); err != nil {
		return manifestdraft.Tool{}, fmt.Errorf("ask for the model's inputs: %w", err)
	}
	d, err := manifestdraft.FromSchema(doc, "Input", "Output")
	if err != nil {
		return manifestdraft.Tool{}, fmt.Errorf("read the model's inputs: %w", err)
	}
	if len(d.Missing) > 0 {
		return manifestdraft.Tool{}, fmt.Errorf("no field can give what the model needs: %s", strings.Join(d.Missing, "; "))
	}
	return d.Tool(name, engineName), nil
}
