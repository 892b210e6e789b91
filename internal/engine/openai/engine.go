// Package openai is the engine for servers that speak OpenAI's API for media:
// OpenAI itself, vLLM-Omni, SGLang, LocalAI and the many that copy it.
//
// They share paths and the names of the main parameters, and differ in the
// rest, so a tool's manifest says what its server wants:
//
//	call             images, edits, speech, videos or video-sync
//	model            sent as it is; "" leaves it out
//	fixed            parameters that are always the same; null takes one away
//	rename           field: parameter; "-" sends it nowhere, size.width and
//	                 size.height part a size, image[] always sends a list
//	seed             the parameter that takes the seed; none where it is empty
//	response_format  sent only where it is named: some servers refuse it
//	batch            how many results one call may ask for: 10
//	stream           watch a picture come, for servers that can show that
//	json             send videos as JSON, not as a form
//
// Pictures, speech and video-sync are one blocking call for each batch; ending
// the job drops it. A video is a job of the server's own: it is noted with
// Sink.Leave, looked after, fetched, and deleted when ours ends before it. To
// make one costs somebody money, so a call that may have begun one without
// telling its name is never repeated.
package openai

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are how an engine works with its server.
type Options struct {
	// Poll is the time between two looks at a video: 2 s.
	Poll time.Duration
	// MaxAnswer bounds an answer with results in it, in bytes:
	// backend.MaxAnswer, which is also the most.
	MaxAnswer int64
}

// Engine runs jobs on one server.
type Engine struct {
	c    *backend.Client
	poll time.Duration
	most int64
}

// New makes an engine. The client's address is where the API begins, such as
// https://host/v1.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{c: c, poll: cmp.Or(o.Poll, 2*time.Second), most: cmp.Or(o.MaxAnswer, backend.MaxResponse)}
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// setting is the engine's part of a manifest.
type setting struct {
	Call           string            `json:"call"`
	Model          string            `json:"model"`
	Fixed          map[string]any    `json:"fixed"`
	Rename         map[string]string `json:"rename"`
	Seed           string            `json:"seed"`
	ResponseFormat string            `json:"response_format"`
	Batch          int               `json:"batch"`
	Stream         bool              `json:"stream"`
	JSON           bool              `json:"json"`
}

// task is a job that is being done.
type task struct {
	engine.Job
	setting
	e   *Engine
	out engine.Sink
	bar engine.Span
}

// calls are what a manifest can name.
var calls = map[string]func(*task, context.Context) error{
	"images":     (*task).pictures,
	"edits":      (*task).pictures,
	"speech":     (*task).speech,
	"videos":     (*task).videos,
	"video-sync": (*task).videoSync,
}

// Manual says what a manifest can ask of the engine.
func Manual() engine.Manual {
	return engine.Manual{
		Setting: func() any { return &setting{} },
		Choices: map[string][]string{"call": slices.Sorted(maps.Keys(calls))},
		Check: func(with string) error {
			var s setting
			if err := engine.DecodeSetting(with, &s); err != nil {
				return err
			}
			if s.Batch < 0 {
				return engine.ErrMisconfigured.Because(errors.New("batch: must not be below zero"))
			}
			return nil
		},
	}
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := &task{Job: j, e: e, out: out, bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.setting); err != nil {
		return err
	}
	do, ok := calls[t.Call]
	if !ok || t.Batch < 0 {
		return engine.ErrMisconfigured
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return do(t, ctx)
}

// Probe asks for the models, which every server can tell and which needs the
// credentials.
func (e *Engine) Probe(ctx context.Context) error {
	_, err := e.models(ctx)
	return err
}

// done tells that so many results are there.
func (t *task) done(results int) { t.bar.ReportProgress(float64(results) / float64(t.NumResults)) }

// deliverBody hands over an answer that is the result itself. Words are none:
// some servers tell their errors so.
func (t *task) deliverBody(ctx context.Context, res *http.Response) error {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json") {
		return backend.ErrBadResponse
	}
	return backend.DeliverReader(ctx, res.Body, t.out)
}
