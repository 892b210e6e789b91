// Package fal runs tools with fal's queue. Every request costs money.
//
// Therefore no request is sent twice. The queue has neither an idempotency key nor a list of
// requests: a request whose response is lost cannot be found, and its run fails permanently instead
// of paying again. The engine saves a checkpoint before each request and another one with its id
// after it; the next worker resumes the requests of the checkpoint.
//
// fal itself retries a request whose runner failed. That is one request and one price.
package fal

import (
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

// Options are the settings of the queue and of the hosts beside it.
type Options struct {
	// PollInterval is the first interval between queries of a request. Default: 1 s.
	PollInterval time.Duration
	// PollTimeout is how long queries may keep failing. Default: a minute.
	PollTimeout time.Duration
	// Storage takes uploads with the queue's credentials. nil: all files are embedded in requests.
	Storage *backend.Client
	// SendURLs sends large inputs as URLs of this service, which the provider must be able to
	// reach, instead of uploading them.
	SendURLs bool
	// Catalog has the schemas of models, for the import of models.
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

// New returns an engine. The client has the queue's address and the key.
func New(c *backend.Client, o Options) *Engine { return &Engine{c, o} }

// Probe queries a request that does not exist. "Not found" is the response of a queue that works
// and accepts the key.
func (e *Engine) Probe(ctx context.Context) error {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	err := e.c.CallJSON(short, "GET", "fal-ai/flux/requests/00000000-0000-0000-0000-000000000000/status", nil, nil)
	if s, ok := errors.AsType[*backend.Status](err); ok {
		switch s.Code {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
			return nil
		}
	}
	return backend.CallFailure(ctx, err)
}

// manifestSetting is the engine's part of a manifest: the endpoint and the mapping of fields to
// its inputs.
type manifestSetting struct {
	Endpoint string `json:"endpoint"` // such as fal-ai/flux/dev
	backend.Mapping
}

var endpointPattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)

// appName returns the endpoint without its sub-path, under which its requests are found: requests
// to fal-ai/flux/dev belong to fal-ai/flux.
func (s manifestSetting) appName() string {
	parts := strings.Split(s.Endpoint, "/")
	n := 2
	if slices.Contains([]string{"workflows", "comfy"}, parts[0]) {
		n = 3
	}
	return strings.Join(parts[:min(n, len(parts))], "/")
}

// ManifestSpec describes the engine's settings in a manifest.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Check: func(with string) error {
			var s manifestSetting
			if err := engine.DecodeSetting(with, &s); err != nil {
				return err
			}
			if !endpointPattern.MatchString(s.Endpoint) {
				return engine.ErrMisconfigured.WithCause(errors.New("endpoint must be the name of one, such as fal-ai/flux/dev"))
			}
			return nil
		},
	}
}

// Run does the job with as many requests as necessary, one after the other.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := task{e: e}
	if err := engine.DecodeSetting(j.With, &t.with); err != nil {
		return err
	}
	if !endpointPattern.MatchString(t.with.Endpoint) {
		return engine.ErrMisconfigured
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	end, cancel := backend.WithGrace(ctx, backend.GracePeriod)
	defer cancel()
	t.PaidJob = backend.NewPaidJob(e.c, j, out, t.with.Mapping, end)
	t.resumeCheckpoint(j.SavedCheckpoint)
	err := t.runRequests(ctx)
	if err != nil {
		t.cancelRequests(ctx, err)
	}
	return err
}
