// Package replicate runs tools with Replicate's HTTP API. Every prediction costs money.
//
// Therefore no prediction is created twice. The API has no idempotency key, and when a connection
// breaks it is unknown whether the prediction was created. The engine therefore saves a checkpoint
// with a hash of the inputs before each create request, and another one with the prediction's id
// after it:
//
//	checkpoint "creating" ──create──▶ checkpoint with the id ──poll──▶ outputs
//	       │ no response
//	       └──list──▶ exactly one recent prediction of that model with those
//	                  inputs, and of no other job in this process: adopt it
//	              └─▶ none, or several: the run fails permanently
//
// A worker that continues the run resumes the predictions in the checkpoint.
// Predictions that were cancelled meanwhile are created again.
package replicate

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are the settings of a Replicate engine.
type Options struct {
	// PollInterval is the first interval between queries of a prediction. Default: 1 s.
	PollInterval time.Duration
	// PollTimeout is how long queries may keep failing before the run fails.
	// Default: one minute.
	PollTimeout time.Duration
	// SendURLs makes the engine send large input files as URLs of this
	// service, which the provider must be able to reach, instead of uploading
	// them.
	SendURLs bool
	// Now returns the current time. If it is nil, the search for the
	// prediction of a create request without a response includes predictions
	// of any age.
	Now func() time.Time
}

// Engine runs jobs with one Replicate account.
type Engine struct {
	c *backend.Client
	o Options

	mu        sync.Mutex
	activeIDs map[string]bool // ids of running jobs' predictions, which no other job may adopt
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// New returns an engine that uses the API of c. The client has the API's URL
// and the access token.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{c: c, o: o, activeIDs: map[string]bool{}}
}

// Probe checks the API by querying the account, which costs nothing.
func (e *Engine) Probe(ctx context.Context) error {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	return backend.CallFailure(ctx, e.c.CallJSON(short, "GET", "account", nil, nil))
}

// manifestSetting is the engine.with section of a tool's manifest: a model,
// version or deployment, and the mapping of fields to its inputs.
type manifestSetting struct {
	model
	backend.Mapping
}

// model identifies the model, version or deployment to run. Exactly one field is set.
type model struct {
	Model      string `json:"model,omitempty"`      // owner/name of an official model
	Version    string `json:"version,omitempty"`    // id of a model's version
	Deployment string `json:"deployment,omitempty"` // owner/name of a deployment
}

var pairPattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// createPath returns the API path for creating predictions of the model.
func (m model) createPath() (string, error) {
	switch {
	case len(m.Model)+len(m.Version)+len(m.Deployment) > max(len(m.Model), len(m.Version), len(m.Deployment)):
		return "", engine.ErrMisconfigured // more than one of model, version and deployment is set
	case m.Version != "":
		return "predictions", nil
	case pairPattern.MatchString(m.Model):
		return "models/" + m.Model + "/predictions", nil
	case pairPattern.MatchString(m.Deployment):
		return "deployments/" + m.Deployment + "/predictions", nil
	}
	return "", engine.ErrMisconfigured
}

// hasMade reports whether a prediction in the provider's list was made by the
// model, version or deployment.
func (m model) hasMade(p listedPrediction) bool {
	switch {
	case m.Model != "":
		return strings.EqualFold(p.Model, m.Model)
	case m.Version != "":
		_, id, named := strings.Cut(m.Version, ":") // a version may be written as owner/name:id
		return p.Version == m.Version || named && p.Version == id
	}
	return p.Deployment == "" || strings.EqualFold(p.Deployment, m.Deployment)
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
			if _, err := s.createPath(); err != nil {
				return engine.ErrMisconfigured.WithCause(errors.New("must have exactly one of model, version and deployment; a model or deployment must have the form owner/name"))
			}
			return nil
		},
	}
}

// Run does the job with as many predictions as necessary, and passes their
// results to out in order.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := task{e: e}
	if err := engine.DecodeSetting(j.With, &t.with); err != nil {
		return err
	}
	var err error
	if t.path, err = t.with.createPath(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	end, cancel := backend.WithGrace(ctx, backend.GracePeriod)
	defer cancel()
	t.PaidJob = backend.NewPaidJob(e.c, j, backend.DropCopies(j, out), t.with.Mapping, end)
	t.resumeCheckpoint(j.SavedCheckpoint)
	defer t.releaseActive()
	if err = t.runPredictions(ctx); err != nil {
		t.cancelPredictions(ctx, err)
	}
	return err
}
