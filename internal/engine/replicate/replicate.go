// Package replicate runs tools with Replicate's HTTP API, where every prediction
// costs money.
//
// So none is created twice. The API has no key to make a create idempotent, and
// what is lost with a connection is whether it happened. The engine therefore
// leaves a note before each create, with a hash of the inputs, and another with
// the prediction's id after it:
//
//	note "creating" ──create──▶ note with the id ──poll──▶ outputs
//	       │ no answer
//	       └──list──▶ exactly one recent prediction of that model with those
//	                  inputs that is nobody else's here: it is the one
//	              └─▶ none, or several: the run fails for good
//
// A worker that comes after another takes up what the note names. What was
// cancelled on the way is created afresh.
package replicate

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are how the API is used.
type Options struct {
	// Poll is how often a prediction is looked at, at first: 1 s.
	Poll time.Duration
	// Patience is how long it may be impossible to look: a minute.
	Patience time.Duration
	// Addresses sends large inputs as addresses of ours, which the provider has
	// to reach, instead of uploading them.
	Addresses bool
	// Now tells the time. Without it, a prediction of any age may be taken for
	// one whose create was not answered.
	Now func() time.Time
}

// Engine runs jobs with one account.
type Engine struct {
	c *backend.Client
	o Options

	mu   sync.Mutex
	held map[string]bool // predictions of jobs that run now: nobody else's
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// New makes an engine. The client knows the address and the token.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{c: c, o: o, held: map[string]bool{}}
}

// Probe asks who we are, which costs nothing.
func (e *Engine) Probe(ctx context.Context) error {
	short, cancel := e.c.Short(ctx)
	defer cancel()
	return backend.Failure(ctx, e.c.JSON(short, "GET", "account", nil, nil))
}

// setting is the engine's part of a manifest: what runs, as one of three, and
// how fields become its inputs.
type setting struct {
	model
	backend.Mapping
}

// model is what runs.
type model struct {
	Model      string `json:"model,omitempty"`      // owner/name, of an official model
	Version    string `json:"version,omitempty"`    // the id of a version
	Deployment string `json:"deployment,omitempty"` // owner/name
}

var pair = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// path is where predictions of it are created.
func (m model) path() (string, error) {
	switch {
	case len(m.Model)+len(m.Version)+len(m.Deployment) > max(len(m.Model), len(m.Version), len(m.Deployment)):
		return "", engine.ErrMisconfigured // more than one
	case m.Version != "":
		return "predictions", nil
	case pair.MatchString(m.Model):
		return "models/" + m.Model + "/predictions", nil
	case pair.MatchString(m.Deployment):
		return "deployments/" + m.Deployment + "/predictions", nil
	}
	return "", engine.ErrMisconfigured
}

// made tells whether a prediction is one of the model.
func (m model) made(p listed) bool {
	switch {
	case m.Model != "":
		return strings.EqualFold(p.Model, m.Model)
	case m.Version != "":
		_, id, named := strings.Cut(m.Version, ":") // owner/name:id is a version too
		return p.Version == m.Version || named && p.Version == id
	}
	return p.Deployment == "" || strings.EqualFold(p.Deployment, m.Deployment)
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
			if _, err := s.path(); err != nil {
				return engine.ErrMisconfigured.Because(errors.New("must name one of model, version and deployment, a model or a deployment as owner/name"))
			}
			return nil
		},
	}
}

// late is how long calls may go on that settle what a job leaves behind.
const late = 1500 * time.Millisecond

// Run does the job with as many predictions as it takes, one after the other.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := task{e: e, job: j, out: out, bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.with); err != nil {
		return err
	}
	var err error
	if t.path, err = t.with.path(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	end, cancel := backend.Linger(ctx, late)
	defer cancel()
	t.end = end
	t.takeUp(j.Left)
	defer t.release()
	if err = t.all(ctx); err != nil {
		t.stop(ctx, err)
	}
	return err
}

func (e *Engine) pace() *backend.Pace {
	every := cmp.Or(e.o.Poll, time.Second)
	return &backend.Pace{Every: every, Most: 5 * every, Patience: e.o.Patience}
}
