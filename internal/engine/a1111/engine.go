// Package a1111 is the engine for AUTOMATIC1111's Stable Diffusion web UI,
// started with --api, and for servers with the same API: Forge, SD.Next and
// stable-diffusion.cpp.
//
// A tool's manifest has these settings:
//
//	call        API endpoint: txt2img, img2img or upscale
//	checkpoint  the model, which must be on the server; if empty, the model
//	            that is loaded
//	fixed       constant parameters of the body, such as override_settings;
//	            Forge needs forge_additional_modules in it for Flux
//	rename      maps fields to parameters; "-" means that a field is not sent;
//	            size.width and size.height are the sides of a size
//	markup      allow: people may use extra networks such as <lora:name:1>
//	            and wildcards in prompts; default: refuse
//
// The server does one task at a time, for all clients, and responds when the
// task is done. Meanwhile the engine queries the progress of its own task by
// name, because the server's general status may be about another client's
// task. For the same reason the engine interrupts the server for a cancelled
// job only while the server works on this job's task. Between the query and
// the interruption another task may begin; the API offers no way to prevent
// that. A task that waits in the server's queue cannot be cancelled.
//
// SD.Next and stable-diffusion.cpp do not treat API requests as tasks: a job on
// such a server has no progress or previews, and if it is cancelled, the server
// still completes it. stable-diffusion.cpp makes one batch per request, so the
// engine repeats the request until there are enough pictures.
package a1111

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
)

// Options are the settings of an AUTOMATIC1111 engine.
type Options struct {
	// PollInterval is the time between two queries of a task's progress. Default: 1 s.
	PollInterval time.Duration
	// MaxResponse is the maximum size, in bytes, of a response that contains
	// results. Default and maximum: backend.MaxResponse.
	MaxResponse int64
}

// Engine runs jobs on one server with AUTOMATIC1111's API.
type Engine struct {
	c           *backend.Client
	poll        time.Duration
	maxResponse int64
}

// New returns an engine that uses the server of c. If the server was started
// with --api-auth, the client's headers must contain the Basic credentials.
func New(c *backend.Client, o Options) *Engine {
	return &Engine{c: c, poll: cmp.Or(o.PollInterval, time.Second), maxResponse: cmp.Or(o.MaxResponse, backend.MaxResponse)}
}

var _ engine.Prober = (*Engine)(nil)

// manifestSetting is the engine.with section of a tool's manifest.
type manifestSetting struct {
	Call       string            `json:"call"`
	Checkpoint string            `json:"checkpoint"`
	Fixed      map[string]any    `json:"fixed"`
	Rename     map[string]string `json:"rename"`
	Markup     backend.Markup    `json:"markup"`
}

// callNames are the API endpoints that a manifest can select.
var callNames = []string{"img2img", "txt2img", "upscale"}

// ManifestSpec describes the settings that a tool's manifest may have for this
// engine.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Choices: map[string][]string{"call": callNames},
		Check: func(with string) error {
			var s manifestSetting
			if err := engine.DecodeSetting(with, &s); err != nil {
				return err
			}
			return s.Markup.CheckSetting()
		},
	}
}

// task is the state of one running job.
type task struct {
	engine.Job
	manifestSetting
	e   *Engine
	out engine.Sink
	bar engine.Span
}

// Run makes the pictures of a job and passes them to out.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	t := &task{Job: j, e: e, out: backend.DropCopies(j, out), bar: engine.NewSpan(out)}
	if err := engine.DecodeSetting(j.With, &t.manifestSetting); err != nil {
		return err
	}
	if err := t.Markup.CheckSetting(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.Markup.RefuseMarkup(j.Values, backend.ExtraNetworks, backend.Wildcards); err != nil {
		return err
	}
	switch t.Call {
	case "txt2img", "img2img":
		return t.drawPictures(ctx)
	case "upscale":
		return t.upscalePicture(ctx)
	}
	return engine.ErrMisconfigured
}

// Probe checks the server by listing its samplers. That request is fast, needs
// --api and the credentials, and does not wait for the server's current task.
func (e *Engine) Probe(ctx context.Context) error {
	short, cancel := e.c.WithTimeout(ctx)
	defer cancel()
	var list []json.RawMessage
	return callFailure(ctx, e.c.CallJSON(short, http.MethodGet, "sdapi/v1/samplers", nil, &list))
}

// drawResponse is the server's response to a request to txt2img or img2img.
type drawResponse struct {
	Images []string `json:"images"`
	Info   string   `json:"info"` // a JSON object, encoded as a string
}

// drawPictures makes pictures from a prompt or, for img2img, from a prompt and
// other pictures. A server may return fewer pictures than requested, so the
// request is repeated until there are enough or a response has none.
func (t *task) drawPictures(ctx context.Context) error {
	body, err := t.requestBody(ctx)
	if err != nil {
		return err
	}
	if t.Call == "img2img" && body["init_images"] == nil {
		return engine.Fail(engine.Failed, "A picture is required.")
	}
	if err := t.checkNames(ctx, body); err != nil {
		return err
	}

	for made := 0; made < t.NumResults; {
		n, err := t.drawBatches(ctx, body, made)
		if err != nil {
			return err
		}
		if n == 0 && made == 0 {
			return backend.ErrNoResult
		}
		if n == 0 {
			return nil // the job succeeds with fewer results than requested
		}
		made += n
	}
	return nil
}

// drawBatches sends one request for the pictures that are missing and returns
// how many the server made. made is the number of pictures of earlier requests.
func (t *task) drawBatches(ctx context.Context, body map[string]any, made int) (int, error) {
	name := fmt.Sprintf("task(%s-%d-%d)", t.RunID, t.Attempt, t.Try)
	if made > 0 {
		name = fmt.Sprintf("task(%s-%d-%d-%d)", t.RunID, t.Attempt, t.Try, made)
		if _, fixed := t.Fixed["seed"]; !fixed {
			body["seed"] = t.Seed + uint32(made)
		}
	}
	body["force_task_id"] = name
	missing := t.NumResults - made
	t.setBatches(body, missing)

	bar := t.bar.SubSpan(float64(made)/float64(t.NumResults), 1)
	var res drawResponse
	if err := t.callWithProgress(ctx, name, bar, func(ctx context.Context) error { return t.postWork(ctx, "sdapi/v1/"+t.Call, body, &res) }); err != nil {
		return 0, err
	}
	own := res.requestedImages()
	own = own[:min(len(own), missing)]
	for i, image := range own {
		if err := t.deliverImage(ctx, image); err != nil {
			return i, err
		}
		bar.ReportProgress(float64(i+1) / float64(missing))
	}
	return len(own), nil
}

// requestedImages returns the pictures that the job requested. It leaves out
// the grid, a picture that shows all results and comes first, and pictures that
// scripts added at the end.
func (r drawResponse) requestedImages() []string {
	var info struct {
		First int   `json:"index_of_first_image"`
		Seeds []any `json:"all_seeds"`
	}
	if json.Unmarshal([]byte(r.Info), &info) != nil || len(info.Seeds) == 0 {
		return r.Images
	}
	first := min(max(info.First, 0), len(r.Images))
	return r.Images[first:min(first+len(info.Seeds), len(r.Images))]
}

// upscalePicture enlarges a picture. The server gives this request no task
// name, so its progress cannot be queried and it cannot be interrupted.
// upscalePicture makes only one result even if more were requested, because all
// results would be equal.
func (t *task) upscalePicture(ctx context.Context) error {
	body, err := t.requestBody(ctx)
	if err != nil {
		return err
	}
	if body["image"] == nil {
		return engine.Fail(engine.Failed, "A picture is required.")
	}
	if name, _ := body["upscaler_1"].(string); name == "" || name == "None" {
		return engine.Fail(engine.Failed, "An upscaler is required. Choose one, or contact the operator if the tool has no field for it.")
	}
	var res struct {
		Image string `json:"image"`
	}
	if err := t.postWork(ctx, "sdapi/v1/extra-single-image", body, &res); err != nil {
		return callFailure(ctx, err)
	}
	if err := t.deliverImage(ctx, res.Image); err != nil {
		return err
	}
	t.bar.ReportProgress(1)
	return nil
}

// postWork sends a request that makes pictures and decodes the JSON response
// into the given variable.
func (t *task) postWork(ctx context.Context, path string, body map[string]any, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return engine.ErrMisconfigured.WithCause(err)
	}
	res, err := t.e.c.Do(ctx, backend.Request{Method: http.MethodPost, Path: path, Body: bytes.NewReader(b), Type: "application/json"})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return backend.DecodeJSONLimit(res.Body, t.e.maxResponse, into)
}

// deliverImage passes a picture to the sink. image is base64, with or without
// the prefix of a data: URI.
func (t *task) deliverImage(ctx context.Context, image string) error {
	if strings.HasPrefix(image, "data:") {
		_, image, _ = strings.Cut(image, ",")
	}
	return backend.DeliverReader(ctx, backend.Base64Reader(image), t.out)
}
