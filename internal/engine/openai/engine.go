// Package openai is the engine for servers with OpenAI's API for media: OpenAI itself, vLLM-Omni,
// SGLang, LocalAI and compatible ones.
//
// The servers share paths and the names of the main parameters, and differ in the rest, so a tool's
// manifest describes its server:
//
//	call             images, edits, speech, videos or video-sync
//	model            sent as it is; "" omits it
//	fixed            constant parameters; null removes one
//	rename           field: parameter; "-" sends the field to no parameter,
//	                 size.width and size.height are the sides of a size,
//	                 image[] always sends a list
//	seed             the parameter for the seed; "": none
//	response_format  sent only if set: some servers refuse it
//	batch            the most results per call: 10
//	stream           follow the progress of a picture, for servers with previews
//	json             send videos as JSON, not as a form
//
// Pictures, speech and video-sync are one blocking call per batch; ending the job drops the call.
// A video is a job on the server: it is saved in a checkpoint, polled, fetched, and deleted if
// this job ends first. A video costs money, so a call that may have begun one without returning
// its id is never repeated.
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

// Options are the engine's settings.
type Options struct {
	// PollInterval is the time between two polls of a video. Default: 2 s.
	PollInterval time.Duration
	// MaxResponse limits a response with results, in bytes. Default and maximum: backend.MaxResponse.
	MaxResponse int64
}

// Engine runs jobs on one server.
type Engine struct {
	c           *backend.Client
	poll        time.Duration
	maxResponse int64
}

// New returns an engine. The client's address is the base of the API, such as https://host/v1.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{c: c, poll: cmp.Or(o.PollInterval, 2*time.Second), maxResponse: cmp.Or(o.MaxResponse, backend.MaxResponse)}
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// manifestSetting is the engine's part of a manifest.
type manifestSetting struct {
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

// task is a running job.
type task struct {
	engine.Job
	manifestSetting
	e   *Engine
	out engine.Sink
	bar engine.Span
}

// callFuncs are the calls that a manifest can name.
var callFuncs = map[string]func(*task, context.Context) error{
	"images":     (*task).makePictures,
	"edits":      (*task).makePictures,
	"speech":     (*task).makeSpeech,
	"videos":     (*task).makeVideos,
	"video-sync": (*task).makeVideosSync,
}

// ManifestSpec describes the engine's settings in a manifest.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Choices: map[string][]string{"call": slices.Sorted(maps.Keys(callFuncs))},
		Check: func(with string) error {
			var s manifestSetting
			if err := engine.DecodeSetting(with, &s); err != nil {
				return err
			}
			if s.Batch < 0 {
				return engine.ErrMisconfigured.WithCause(errors.New("batch: must not be below zero"))
			}
			return nil
		},
	}
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := &task{Job: j, e: e, out: out, bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.manifestSetting); err != nil {
		return err
	}
	do, ok := callFuncs[t.Call]
	if !ok || t.Batch < 0 {
		return engine.ErrMisconfigured
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return do(t, ctx)
}

// Probe lists the models, which every server supports and which needs the credentials.
func (e *Engine) Probe(ctx context.Context) error {
	_, err := e.fetchModels(ctx)
	return err
}

// reportDone reports the number of complete results.
func (t *task) reportDone(results int) {
	t.bar.ReportProgress(float64(results) / float64(t.NumResults))
}

// deliverBody passes a response to the sink that is the result itself. Text is refused: some
// servers send errors this way.
func (t *task) deliverBody(ctx context.Context, res *http.Response) error {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json") {
		return backend.ErrBadResponse
	}
	return backend.DeliverReader(ctx, res.Body, t.out)
}
