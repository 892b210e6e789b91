// Package openai is the engine for servers with OpenAI's API for media: OpenAI
// itself, vLLM-Omni, SGLang, LocalAI and compatible ones.
//
// The servers have the same paths and main parameters, but differ in other
// respects, so a tool's manifest describes its server:
//
//	call             API endpoint: images, edits, speech, videos or video-sync
//	model            sent unchanged; omitted if empty
//	fixed            constant parameters; null removes one
//	rename           maps fields to parameters; "-" means that a field is not
//	                 sent; size.width and size.height are the sides of a size;
//	                 image[] always sends a list
//	seed             the parameter for the seed; if empty, no seed is sent
//	seed_max         the largest seed that the server accepts; larger ones
//	                 wrap around
//	response_format  sent only if set: some servers refuse it
//	batch            maximum number of results per request; default: 10
//	dialect          localai for LocalAI, which has other parameter names, one
//	                 seed per request and negative prompts after a | in the
//	                 prompt
//	markup           allow: people may use extra networks such as
//	                 <lora:name:1> in prompts; default: refuse
//	stream           receive progress and previews of a picture as a stream
//	json             send videos as JSON instead of a form
//
// Pictures, speech and video-sync are one blocking request per batch; if the
// job is cancelled, the engine closes the connection. A video is a job on the
// server: the engine saves its id in a checkpoint, polls it and downloads the
// result, or deletes the video if the run ends first. Some servers, such as
// SGLang, continue to work on a deleted video. A video costs money, so a
// request that may have created one without returning its id is never repeated.
//
// Results that equal an earlier result of the same run are dropped, because a
// server that ignores seeds makes the same picture again.
package openai

import (
	"cmp"
	"context"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are the settings of an OpenAI engine.
type Options struct {
	// PollInterval is the time between two polls of a video. Default: 2 s.
	PollInterval time.Duration
	// MaxResponse is the maximum size, in bytes, of a response that contains
	// results. Default and maximum: backend.MaxResponse.
	MaxResponse int64
}

// Engine runs jobs on one server with OpenAI's API.
type Engine struct {
	c           *backend.Client
	poll        time.Duration
	maxResponse int64
}

// New returns an engine that uses the server of c. The client's base URL is the
// API's base URL, such as https://host/v1.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{c: c, poll: cmp.Or(o.PollInterval, 2*time.Second), maxResponse: cmp.Or(o.MaxResponse, backend.MaxResponse)}
}

var (
	_ engine.Prober    = (*Engine)(nil)
	_ engine.Abandoner = (*Engine)(nil)
)

// manifestSetting is the engine.with section of a tool's manifest.
type manifestSetting struct {
	Call           string            `json:"call"`
	Model          string            `json:"model"`
	Fixed          map[string]any    `json:"fixed"`
	Rename         map[string]string `json:"rename"`
	Seed           string            `json:"seed"`
	SeedMax        uint32            `json:"seed_max"`
	ResponseFormat string            `json:"response_format"`
	Batch          int               `json:"batch"`
	Dialect        string            `json:"dialect"`
	Markup         backend.Markup    `json:"markup"`
	Stream         bool              `json:"stream"`
	JSON           bool              `json:"json"`
}

// task is the state of one running job.
type task struct {
	engine.Job
	manifestSetting
	e   *Engine
	out engine.Sink
	bar engine.Span
}

// callFuncs are the API endpoints that a manifest can select, each with the
// function that does the job.
var callFuncs = map[string]func(*task, context.Context) error{
	"images":     (*task).makePictures,
	"edits":      (*task).makePictures,
	"speech":     (*task).makeSpeech,
	"videos":     (*task).makeVideos,
	"video-sync": (*task).makeVideosSync,
}

// ManifestSpec describes the settings that a tool's manifest may have for this
// engine.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Choices: map[string][]string{"call": slices.Sorted(maps.Keys(callFuncs))},
		Check: func(with string) error {
			var s manifestSetting
			if err := engine.DecodeSetting(with, &s); err != nil {
				return err
			}
			return s.checkSetting()
		},
	}
}

// Run makes the media of a job and passes them to out.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := &task{Job: j, e: e, out: backend.DropCopies(j, out), bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.manifestSetting); err != nil {
		return err
	}
	if err := t.checkSetting(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.Call != "speech" { // speech models have no markup that sets parameters, and a text may contain markup that is to be read aloud
		if err := t.Markup.RefuseMarkup(j.Values, backend.ExtraNetworks); err != nil {
			return err
		}
	}
	return callFuncs[t.Call](t, ctx)
}

// Probe checks the server by listing its models. Every server supports that
// request, and it needs the credentials.
func (e *Engine) Probe(ctx context.Context) error {
	_, err := e.fetchModels(ctx)
	return err
}

// reportDone reports the progress of the job when the given number of results
// is complete.
func (t *task) reportDone(results int) {
	t.bar.ReportProgress(float64(results) / float64(t.NumResults))
}

// deliverBody passes the body of a response to the sink as a result. It
// refuses text and JSON, because some servers send errors with a success
// status.
func (t *task) deliverBody(ctx context.Context, res *http.Response) error {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json") {
		return backend.ErrBadResponse
	}
	return backend.DeliverReader(ctx, res.Body, t.out)
}
