// Package fal runs tools with the queue of fal, a hosted provider. Every
// request costs money.
//
// Therefore no request is sent twice. The queue has neither an idempotency key
// nor a list of requests: a request whose response is lost cannot be found, and
// its run fails permanently, because another request could be paid twice. The
// engine saves a checkpoint before each request, and another one with the
// request's id after it. A worker that continues the run resumes the requests
// in the checkpoint.
//
// fal itself retries a request whose runner failed. That counts as one request
// and is paid once.
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

// Options are the settings of a fal engine: how the queue is polled, and fal's
// hosts other than the queue.
type Options struct {
	// PollInterval is the first interval between queries of a request. Default: 1 s.
	PollInterval time.Duration
	// PollTimeout is how long queries may keep failing before the run fails.
	// Default: one minute.
	PollTimeout time.Duration
	// Storage is fal's host for uploads, with the same credentials as the
	// queue. If it is nil, all files are embedded in requests.
	Storage *backend.Client
	// SendURLs makes the engine send large input files as URLs of this
	// service, which the provider must be able to reach, instead of uploading
	// them.
	SendURLs bool
	// Catalog is fal's host for the schemas of models. It is needed to draft
	// manifests.
	Catalog *backend.Client
}

// Engine runs jobs with one fal account.
type Engine struct {
	c *backend.Client
	o Options
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// New returns an engine that uses the queue of c. The client has the queue's
// URL and the account's API key.
func New(c *backend.Client, o Options) *Engine { return &Engine{c, o} }

// Probe queries a request that does not exist. A queue that works and accepts
// the API key responds with "not found".
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

// manifestSetting is the engine.with section of a tool's manifest: the
// endpoint of a model and the mapping of fields to its inputs.
type manifestSetting struct {
	Endpoint string `json:"endpoint"` // model endpoint, such as fal-ai/flux/dev
	backend.Mapping
}

var endpointPattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)

// appName returns the endpoint without its sub-path. The URLs of requests
// contain only this part: requests to fal-ai/flux/dev are found under
// fal-ai/flux.
func (s manifestSetting) appName() string {
	parts := strings.Split(s.Endpoint, "/")
	n := 2
	if slices.Contains([]string{"workflows", "comfy"}, parts[0]) {
		n = 3
	}
	return strings.Join(parts[:min(n, len(parts))], "/")
}

// ManifestSpec describes the settings that a tool's manifest may have for this
// engine.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Check: func(with string) error {
			var s manifestSetting
			if err := engine.DecodeSetting(with, &s); err != nil {
				return err
			}
			if !endpointPattern.MatchString(s.Endpoint) {
				return engine.ErrMisconfigured.WithCause(errors.New("endpoint: must be the name of a fal endpoint, such as fal-ai/flux/dev"))
			}
			return nil
		},
	}
}

// Run does the job with as many provider requests as necessary, and passes
// their results to out in order.
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
	t.PaidJob = backend.NewPaidJob(e.c, j, backend.DropCopies(j, out), t.with.Mapping, end)
	t.resumeCheckpoint(j.SavedCheckpoint)
	err := t.runRequests(ctx)
	if err != nil {
		t.cancelRequests(ctx, err)
	}
	return err
}
