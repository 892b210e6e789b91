// Package fal runs tools with fal's queue, where every request costs money.
//
// So none is sent twice. The queue has no key to make a request idempotent and
// no list to find one in: a request whose answer is lost is lost, and its run
// fails for good instead of paying again. The engine leaves a note before each
// request and another with its id after it; a worker that comes after another
// takes up what the note names.
//
// fal itself tries a request again whose runner broke down. That is one request
// and one price, so it may.
package fal

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are how the queue is used, and the hosts beside it.
type Options struct {
	// Poll is how often a request is looked at, at first: 1 s.
	Poll time.Duration
	// Patience is how long it may be impossible to look: a minute.
	Patience time.Duration
	// Storage takes uploads; it has the queue's credentials. Without it all
	// files go inside requests.
	Storage *backend.Client
	// Addresses sends large inputs as addresses of ours, which the provider has
	// to reach, instead of uploading them.
	Addresses bool
	// Catalog knows the schemas of models, for Import.
	Catalog *backend.Client
}

// Engine runs jobs with one account.
type Engine struct {
	c *backend.Client
	o Options
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// New makes an engine. The client knows the queue's address and the key.
func New(c *backend.Client, o Options) *Engine { return &Engine{c, o} }

// Probe looks at a request that nobody made. That there is none is the answer
// of a queue that works and knows us.
func (e *Engine) Probe(ctx context.Context) error {
	short, cancel := e.c.Short(ctx)
	defer cancel()
	err := e.c.JSON(short, "GET", "fal-ai/flux/requests/00000000-0000-0000-0000-000000000000/status", nil, nil)
	if s, ok := errors.AsType[*backend.Status](err); ok {
		switch s.Code {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
			return nil
		}
	}
	return backend.Failure(ctx, err)
}

// setting is the engine's part of a manifest: the endpoint, and how fields
// become its inputs.
type setting struct {
	Endpoint string `json:"endpoint"` // such as fal-ai/flux/dev
	backend.Mapping
}

var endpoint = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)

// app is the endpoint without its sub-path, under which requests are found: a
// request to fal-ai/flux/dev is one of fal-ai/flux.
func (s setting) app() string {
	parts := strings.Split(s.Endpoint, "/")
	n := 2
	if slices.Contains([]string{"workflows", "comfy"}, parts[0]) {
		n = 3
	}
	return strings.Join(parts[:min(n, len(parts))], "/")
}

// Manual says what a manifest can ask of the engine.
func Manual() engine.Manual {
	return engine.Manual{
		Setting: func() any { return &setting{} },
		Check: func(with string) error {
			var s setting
			if err := engine.DecodeSetting(with, &s); err != nil {
				return err
			}
			if !endpoint.MatchString(s.Endpoint) {
				return engine.ErrMisconfigured.Because(errors.New("endpoint must be the name of one, such as fal-ai/flux/dev"))
			}
			return nil
		},
	}
}

// late is how long calls may go on that settle what a job leaves behind.
const late = 1500 * time.Millisecond

// Run does the job with as many requests as it takes, one after the other.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := task{e: e, job: j, out: out, bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.with); err != nil {
		return err
	}
	if !endpoint.MatchString(t.with.Endpoint) {
		return engine.ErrMisconfigured
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	end, cancel := backend.Linger(ctx, late)
	defer cancel()
	t.end = end
	t.takeUp(j.Left)
	err := t.all(ctx)
	if err != nil {
		t.stop(ctx, err)
	}
	return err
}

func (e *Engine) pace() *backend.Pace {
	every := cmp.Or(e.o.Poll, time.Second)
	return &backend.Pace{Every: every, Most: 5 * every, Patience: e.o.Patience}
}
